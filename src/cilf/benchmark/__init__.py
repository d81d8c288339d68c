"""Benchmarks: one cell is one learner on one stream at one scale, kept in a run folder.

A ``RunConfig`` describes a cell. ``PRESETS`` holds the protocols, ``SCALES`` their sizes.
``run_cell`` runs a cell and yields a record for each window. A ``Grid`` describes many cells, a
``Bench`` keeps them in one folder, and an engine of ``cilf.benchmark.engines`` runs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = ("scales", "presets", "config", "grid", "cell", "bench")


def __getattr__(name: str) -> Any:
    """Import a module on first use, because torch takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf.benchmark' has no attribute {name!r}")
    homes = (import_module(f"cilf.benchmark.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))
