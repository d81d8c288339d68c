"""Learners compared on the same streams: means over seeds, the best, and who is really worse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import stdev

from scipy.stats import wilcoxon

from cilf.core import WindowRecord
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import forgetting_by_window, summarize

FORGETTING = "forgetting"
LEVEL = 0.05  # below it, a difference to the best is marked

Place = tuple[int, int]  # seed and window: where two learners saw the same


@dataclass(frozen=True)
class Score:
    """One learner on one data set, by one metric."""

    by_seed: Mapping[int, float]
    by_place: Mapping[Place, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return mean(self.by_seed.values())

    @property
    def std(self) -> float:
        """Deviation over seeds; NaN of one."""
        return spread(self.by_seed.values())

    @property
    def n_seeds(self) -> int:
        """How many the mean is of."""
        return sum(not math.isnan(value) for value in self.by_seed.values())


def spread(values: Iterable[float]) -> float:
    """The deviation of those that are defined; NaN of fewer than two.

    >>> spread([1.0, float("nan"), 3.0]) == 2**0.5
    True
    """
    defined = [value for value in values if not math.isnan(value)]
    return stdev(defined) if len(defined) > 1 else math.nan


def score(
    metric: str,
    runs: Mapping[int, Sequence[WindowRecord]],
    joint: Mapping[int, Sequence[WindowRecord]] | None = None,
) -> Score:
    """From the records of each seed; forgetting needs those of ``joint``, too."""
    if metric == FORGETTING:
        upper = joint or {}
        shared = {seed: records for seed, records in runs.items() if seed in upper}
        by_seed = {s: summarize(r, joint=upper[s])[FORGETTING] for s, r in shared.items()}
        by_window = {s: forgetting_by_window(r, upper[s]) for s, r in shared.items()}
        return Score(by_seed, {(s, w): v for s, each in by_window.items() for w, v in each.items()})
    by_place = {
        (seed, record.window): float(getattr(record, metric))
        for seed, records in runs.items()
        for record in records
    }
    return Score({seed: summarize(records)[metric] for seed, records in runs.items()}, by_place)


def best(scores: Mapping[str, Score], metric: str) -> list[str]:
    """The learner with the best mean; several if they share it, none if there is no mean.

    >>> best({"a": Score({0: 0.1}), "b": Score({0: 0.3}), "c": Score({0: 0.3})}, "na")
    ['b', 'c']
    """
    defined = {name: each.mean for name, each in scores.items() if not math.isnan(each.mean)}
    choose = max if METRICS[metric].higher_is_better else min
    chosen = choose(defined.values(), default=math.nan)
    return [name for name, value in defined.items() if value == chosen]


def p_value(one: Score, other: Score) -> float:
    """How likely differences as large as these are if neither is better (Wilcoxon, two-sided).

    Paired over the seeds and windows that both have; NaN of none.

    >>> high = Score({0: 0.9}, {(0, window): 0.9 - window / 100 for window in range(8)})
    >>> low = Score({0: 0.5}, {(0, window): 0.5 - window / 50 for window in range(8)})
    >>> round(p_value(high, low), 4)
    0.0078
    """
    pairs = [(one.by_place[place], other.by_place[place]) for place in one.by_place
             if place in other.by_place]  # fmt: skip
    differences = [a - b for a, b in pairs if not math.isnan(a - b)]
    if not differences:
        return math.nan
    if not any(differences):
        return 1.0
    return float(wilcoxon(differences).pvalue)
