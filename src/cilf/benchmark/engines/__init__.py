"""Engines: where the cells of a benchmark are run. Each yields what happens as it happens."""

from __future__ import annotations

from cilf.benchmark.engines.events import Ended, Engine, Event, Lost, Started
from cilf.benchmark.engines.local import LocalEngine
from cilf.benchmark.engines.on_ray import RayEngine

__all__ = ["ENGINES", "Ended", "Engine", "Event", "LocalEngine", "Lost", "RayEngine", "Started"]

ENGINES = ("local", "ray")
