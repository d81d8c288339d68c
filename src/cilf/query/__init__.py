"""Queries: the choice of instances that a person labels, and the use of the answers.

``choose_queries`` chooses the instances to query, by one of the ``STRATEGIES``.
``propagate_answers`` and ``name_clusters`` label more instances than were queried. A
``QueryPolicy`` holds the choices of a run. All functions work on a detection, in a simulation or on
your own data.
"""

from cilf.core.deprecation import old_attributes
from cilf.query.oracle import Oracle
from cilf.query.propagation import name_clusters, propagate_answers
from cilf.query.query_policy import QueryPolicy
from cilf.query.strategies import STRATEGIES, choose_queries

__all__ = [
    "STRATEGIES",
    "Oracle",
    "QueryPolicy",
    "choose_queries",
    "name_clusters",
    "propagate_answers",
]

__getattr__ = old_attributes(__name__)
