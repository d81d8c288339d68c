"""Benchmarks: one cell is one learner on one stream at one scale, kept in a run folder.

``RunConfig`` says what to run, ``PRESETS`` the paper's protocols, ``SCALES`` how large;
``run_cell`` runs it and yields a record for each window. A ``Grid`` names many cells at once, a
``Bench`` keeps them in one folder, and an engine (``cilf.benchmark.engines``) runs them.
"""

from cilf.benchmark.bench import Bench
from cilf.benchmark.cell import Cell, run_cell
from cilf.benchmark.config import RunConfig
from cilf.benchmark.grid import Grid, GridCell, read_grid
from cilf.benchmark.presets import PRESETS, SCENARIOS, Preset, preset
from cilf.benchmark.scales import SCALES

__all__ = [
    "PRESETS",
    "SCALES",
    "SCENARIOS",
    "Bench",
    "Cell",
    "Grid",
    "GridCell",
    "Preset",
    "RunConfig",
    "preset",
    "read_grid",
    "run_cell",
]
