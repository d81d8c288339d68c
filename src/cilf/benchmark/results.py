"""The results of a benchmark: means over the cells that differ by their seed alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import NamedTuple

from cilf.benchmark.bench import State
from cilf.benchmark.config import POLICY, RunConfig
from cilf.core import WindowRecord
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import summarize
from cilf.learners import Joint, learner_class
from cilf.query.query_policy import QueryPolicy

ALL_CLASSES = "holdout_all"
USUAL = {name: getattr(QueryPolicy, name) for name in POLICY}


def compute_std(values: Iterable[float]) -> float:
    """Compute the standard deviation of the defined values; NaN for fewer than two.

    >>> compute_std([1.0, float("nan"), 3.0]) == 2**0.5
    True
    """
    defined = [value for value in values if not math.isnan(value)]
    return stdev(defined) if len(defined) > 1 else math.nan


@dataclass(frozen=True)
class Difference:
    """The differences of two scores on the seeds that both have."""

    by_seed: Mapping[int, float]

    @property
    def mean(self) -> float:
        return mean(self.by_seed.values())

    @property
    def std(self) -> float:
        """Standard deviation over seeds; NaN for one seed."""
        return compute_std(self.by_seed.values())

    def is_clear(self) -> bool:
        """Whether the mean is above 0, and above the deviation if there are several seeds."""
        return self.mean > (0.0 if math.isnan(self.std) else self.std)

    def format(self) -> str:
        """
        >>> Difference({0: 0.01, 1: 0.03}).format(), Difference({0: 0.01}).format()
        ('0.020 ± 0.014', '0.010')
        """
        return f"{self.mean:.3f}" + ("" if math.isnan(self.std) else f" ± {self.std:.3f}")


@dataclass(frozen=True)
class Means:
    """The mean summary of the cells that differ by their seed alone."""

    learner: str
    data: str
    scenario: str
    changed: tuple[str, ...]  # from the defaults, the override's name first
    n_seeds: int
    summary: Mapping[str, float]  # see cilf.evaluate.summarize
    over_joint: Difference  # hold-out accuracy on all classes at the end, less that of joint


def means(states: Iterable[State]) -> list[Means]:
    """One row for the cells that differ by their seed alone, in order of first appearance.

    Cells of a stream on which the learner ``joint`` has run too have the metric ``forgetting``.
    """
    done = [(state, learner_class(state.cell.config.learner).name) for state in states]
    joint = {_stream(state): state.folder for state, name in done if name == Joint.name}
    groups: dict[tuple[str, str, str, tuple[str, ...]], dict[int, _Compared]] = {}
    for state, name in done:
        config, upper = state.cell.config, joint.get(_stream(state))
        key = (name, config.data, config.scenario, _list_changes(config, state.cell.override))
        bound = None if upper is None else upper.read_records()
        compared = _compare(state.folder.read_records(), bound)
        groups.setdefault(key, {})[config.seed] = compared
    return [_average(key, found) for key, found in groups.items()]


class _Compared(NamedTuple):
    """The summary of a run, and how far its last accuracy on all classes is above joint's."""

    summary: dict[str, float]
    over_joint: float


def _compare(records: Sequence[WindowRecord], joint: Sequence[WindowRecord] | None) -> _Compared:
    summary = summarize(records, joint=joint)
    ceiling = math.nan if joint is None else summarize(joint)[ALL_CLASSES]
    return _Compared(summary, summary[ALL_CLASSES] - ceiling)


def _average(key: tuple[str, str, str, tuple[str, ...]], found: Mapping[int, _Compared]) -> Means:
    over_joint = Difference({seed: one.over_joint for seed, one in found.items()})
    return Means(*key, len(found), _mean_summary([c.summary for c in found.values()]), over_joint)


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
