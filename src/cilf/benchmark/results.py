"""The results of a benchmark: means over the cells that differ by their seed alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cilf.benchmark.bench import State
from cilf.benchmark.config import RunConfig
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import summarize
from cilf.learners import Joint, learner_class

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
    """One row for the cells that differ by their seed alone, in order of first appearance.

    Cells of a stream on which the learner ``joint`` has run too have the metric ``forgetting``.
    """
    done = [(state, learner_class(state.cell.config.learner).name) for state in states]
    joint = {_stream(state): state.folder for state, name in done if name == Joint.name}
    summaries: dict[tuple[str, str, str, tuple[str, ...]], list[dict[str, float]]] = {}
    for state, name in done:
        config, upper = state.cell.config, joint.get(_stream(state))
        key = (name, config.data, config.scenario, _list_changes(config, state.cell.override))
        bound = None if upper is None else upper.read_records()
        summary = summarize(state.folder.read_records(), joint=bound)
        summaries.setdefault(key, []).append(summary)
    return [Means(*key, len(found), _mean_summary(found)) for key, found in summaries.items()]


def _stream(state: State) -> tuple[str, ...]:
    """The values that determine the windows of a cell."""
    config = state.cell.config
    parts = (config.data, config.loading, config.scenario, config.seed, config.stream_arguments())
    return tuple(map(repr, parts))


def _mean_summary(summaries: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for summary in summaries for name in summary)
    return {name: mean(summary.get(name, math.nan) for summary in summaries) for name in names}


def _list_changes(config: RunConfig, override: str | None) -> tuple[str, ...]:
    ways = [
        f"{name}={getattr(config, name)}"
        for name, usual in USUAL.items()
        if repr(getattr(config, name)) != repr(usual)
    ]
    named = () if override is None else (f"{override}:",)
    return (*named, *ways, *config.changes())
