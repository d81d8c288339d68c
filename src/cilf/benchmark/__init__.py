"""Benchmarks: one cell is one learner on one stream at one scale, kept in a run folder.

A ``RunConfig`` describes a cell. ``PRESETS`` holds the protocols, ``SCALES`` their sizes.
``run_cell`` runs a cell and yields a record for each window. A ``Grid`` describes many cells, a
``Bench`` keeps them in one folder, and an engine of ``cilf.benchmark.engines`` runs them.
"""

from typing import TYPE_CHECKING

from cilf.core.lazy import lazy_attributes

if TYPE_CHECKING:
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

__getattr__ = lazy_attributes(
    __name__,
    {
        "PRESETS": "presets",
        "SCALES": "scales",
        "SCENARIOS": "presets",
        "Bench": "bench",
        "Cell": "cell",
        "Grid": "grid",
        "GridCell": "grid",
        "Preset": "presets",
        "RunConfig": "config",
        "preset": "presets",
        "read_grid": "grid",
        "run_cell": "cell",
    },
)
