"""Engines run the cells of a benchmark and yield events. ``ENGINES`` is their one table.

An engine is a class in a file of its own, with the methods of ``Engine``, and a line of the table.
Its first argument is the largest number of cells to run at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cilf.benchmark.engines.events import Ended, Engine, Event, Lost, Started
from cilf.benchmark.engines.local import LocalEngine
from cilf.benchmark.engines.on_ray import RayEngine
from cilf.core import validation
from cilf.errors import BadConfig

__all__ = [
    "ENGINES",
    "Ended",
    "Engine",
    "Event",
    "LocalEngine",
    "Lost",
    "RayEngine",
    "Started",
    "make_engine",
]

ENGINES: dict[str, Callable[..., Engine]] = {"local": LocalEngine, "ray": RayEngine}


def make_engine(name: str, n_workers: int | None = None, **options: Any) -> Engine:
    """Make the engine of this name.

    Args:
        name: A name of the table ``ENGINES``.
        n_workers: The largest number of cells to run at once. None lets the engine decide.
        options: Arguments of the engine. Those that are None are left out.

    >>> make_engine("local", 2, address=None).n_slots
    2
    >>> make_engine("local", address="auto")
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: address is for engine ray, not local: leave it out.
    """
    engine = ENGINES[validation.one_of("engine", name, ENGINES)]
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if not _takes(engine, option):
            others = " or ".join(other for other, made in ENGINES.items() if _takes(made, option))
            raise BadConfig(f"{option} is for engine {others}, not {name}: leave it out.")
    return engine(n_workers, **given)


def _takes(engine: Callable[..., Engine], option: str) -> bool:
    return option in inspect.signature(engine).parameters
