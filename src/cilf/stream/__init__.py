"""Simulated streams: a plan of which class comes when, the instances, and who answers queries.

``single_novel`` and ``multiple_novel`` make the two scenarios of the paper; a stream is fully
determined by its data set, its parameters and its seed. ``choose_queries`` says which labels to
ask for, ``propagate_answers`` and ``self_taught`` how to name more instances than that: all three
work on what a learner detected, in a simulation or on data of your own.
"""

from cilf.stream.naming import propagate_answers, self_taught
from cilf.stream.oracle import Oracle
from cilf.stream.plan import Plan, PlannedWindow
from cilf.stream.queries import choose_queries
from cilf.stream.simulate import Stream, multiple_novel, single_novel

__all__ = [
    "Oracle",
    "Plan",
    "PlannedWindow",
    "Stream",
    "choose_queries",
    "multiple_novel",
    "propagate_answers",
    "self_taught",
    "single_novel",
]
