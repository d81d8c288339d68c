"""The results of a benchmark: means over the cells that differ by their seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cilf.benchmark.bench import State
from cilf.benchmark.config import RunConfig
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import summarize
from cilf.learners import learner_class

USUAL = {"query": 1.0, "n_novel": None, "strategy": "random", "propagate": None}


@dataclass(frozen=True)
class Means:
    """The mean summary of the cells that differ by their seed alone."""

    learner: str
    data: str
    scenario: str
    changed: tuple[str, ...]  # from the defaults, the override's name first
    n_seeds: int
    summary: Mapping[str, float]  # see cilf.evaluate.summarize


def means(states: Iterable[State]) -> list[Means]:
    """One row for the cells that differ by their seed alone, in order of first appearance."""
    summaries: dict[tuple[str, str, str, tuple[str, ...]], list[dict[str, float]]] = {}
    for state in states:
        config = state.cell.config
        name = learner_class(config.learner).name
        key = (name, config.data, config.scenario, _changed(config, state.cell.override))
        summaries.setdefault(key, []).append(summarize(state.folder.read_records()))
    return [Means(*key, len(found), _mean_summary(found)) for key, found in summaries.items()]


def _mean_summary(summaries: list[dict[str, float]]) -> dict[str, float]:
    return {name: mean(summary[name] for summary in summaries) for name in summaries[0]}


def _changed(config: RunConfig, override: str | None) -> tuple[str, ...]:
    ways = [
        f"{name}={getattr(config, name)}"
        for name, usual in USUAL.items()
        if repr(getattr(config, name)) != repr(usual)
    ]
    named = () if override is None else (f"{override}:",)
    return (*named, *ways, *config.changes())
