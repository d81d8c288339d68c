"""Simulated streams: a plan of which class comes when, the instances, and who answers queries.

``single_novel`` and ``multiple_novel`` make the two scenarios of the paper; a stream is fully
determined by its data set, its parameters and its seed.
"""

from cilf.stream.oracle import Oracle
from cilf.stream.plan import Plan, PlannedWindow
from cilf.stream.simulate import Stream, multiple_novel, single_novel

__all__ = ["Oracle", "Plan", "PlannedWindow", "Stream", "multiple_novel", "single_novel"]
