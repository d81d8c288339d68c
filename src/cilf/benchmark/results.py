"""What came of a benchmark: cells that differ by their seed alone, together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cilf.benchmark.bench import State
from cilf.benchmark.config import RunConfig
from cilf.evaluate.summary import mean, summarize
from cilf.learners import learner_class

USUAL = {"query": 1.0, "n_novel": None, "strategy": "random", "propagate": None}


_Kind = tuple[str, str, str, tuple[str, ...]]  # learner, data, scenario, what is changed


@dataclass(frozen=True)
class Means:
    """Cells that differ by their seed alone."""

    learner: str
    data: str
    scenario: str
    changed: tuple[str, ...]  # from the defaults, the override's name first
    n_seeds: int
    na: float
    auroc: float
    k_exact: float
    holdout_all: float
    seconds: float  # of detection and updates


def means(states: Iterable[State]) -> list[Means]:
    """A row for each kind of cell, in order of first appearance."""
    kinds: dict[_Kind, list[dict[str, float]]] = defaultdict(list)
    for state in states:
        config = state.cell.config
        name = learner_class(config.learner).name
        kind = (name, config.data, config.scenario, _changed(config, state.cell.override))
        kinds[kind].append(summarize(state.folder.read_records()))
    return [_row(kind, summaries) for kind, summaries in kinds.items()]


def _row(kind: _Kind, summaries: list[dict[str, float]]) -> Means:
    def over(name: str) -> float:
        return mean(summary[name] for summary in summaries)

    learner, data, scenario, changed = kind
    return Means(
        learner=learner,
        data=data,
        scenario=scenario,
        changed=changed,
        n_seeds=len(summaries),
        na=over("na"),
        auroc=over("auroc"),
        k_exact=over("k_exact"),
        holdout_all=over("holdout_all"),
        seconds=over("seconds_detect") + over("seconds_update"),
    )


def _changed(config: RunConfig, override: str | None) -> tuple[str, ...]:
    ways = [
        f"{name}={getattr(config, name)}"
        for name, usual in USUAL.items()
        if repr(getattr(config, name)) != repr(usual)
    ]
    named = () if override is None else (f"{override}:",)
    return (*named, *ways, *config.changes())
