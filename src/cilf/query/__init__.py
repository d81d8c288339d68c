"""Queries: which instances to ask a person about, and what to make of the answers.

``choose_queries`` says which labels to ask for, ``propagate_answers`` and ``self_taught`` how to
name more instances than that. They work on what a learner detected, in a simulation or on data of
your own.
"""

from cilf.query.oracle import Oracle
from cilf.query.propagation import propagate_answers, self_taught
from cilf.query.strategies import choose_queries

__all__ = ["Oracle", "choose_queries", "propagate_answers", "self_taught"]
