"""Simulated streams: a plan of which class comes when, and the instances of each window.

``single_novel`` and ``multiple_novel`` make the two scenarios of the paper. A stream is fully
determined by its data set, its parameters and its seed.
"""

from cilf.stream.plan import Plan, PlannedWindow
from cilf.stream.simulate import Stream, multiple_novel, single_novel

__all__ = [
    "Plan",
    "PlannedWindow",
    "Stream",
    "multiple_novel",
    "single_novel",
]
