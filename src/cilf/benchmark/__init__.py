"""Benchmarks: one cell is one learner on one stream at one scale, kept in a run folder.

``RunConfig`` says what to run, ``SCALES`` how large; ``run_cell`` runs it and yields a record
for each window.
"""

from cilf.benchmark.cell import Cell, run_cell
from cilf.benchmark.config import SCENARIOS, RunConfig
from cilf.benchmark.scales import SCALES

__all__ = ["SCALES", "SCENARIOS", "Cell", "RunConfig", "run_cell"]
