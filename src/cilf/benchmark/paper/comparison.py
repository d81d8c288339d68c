"""Learners compared on the same streams: means over seeds, the best learner, and p-values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from scipy.stats import wilcoxon

from cilf.benchmark.results import Difference, compute_std
from cilf.core import WindowRecord
from cilf.evaluate.metric_table import METRICS, value_after
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import forgetting_by_window, summarize

FORGETTING = "forgetting"
LEVEL = 0.05  # a p-value below it counts as a difference

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Score:
    """One metric of one learner on one data set."""

    by_seed: Mapping[int, float]
    by_window: Mapping[tuple[int, int], float] = field(default_factory=dict)  # (seed, window)

    @property
    def mean(self) -> float:
        return mean(self.by_seed.values())

    @property
    def std(self) -> float:
        """Standard deviation over seeds; NaN for one seed."""
        return compute_std(self.by_seed.values())

    @property
    def n_seeds(self) -> int:
        """Number of seeds that have a value."""
        return sum(not math.isnan(value) for value in self.by_seed.values())


def subtract(one: Score, other: Score) -> Difference:
    """Subtract a score from another, seed by seed.

    >>> subtract(Score({0: 0.5, 1: 0.7}), Score({1: 0.5, 2: 0.9})).by_seed[1].__round__(3)
    0.2
    """
    shared = [seed for seed in one.by_seed if seed in other.by_seed]
    return Difference({seed: one.by_seed[seed] - other.by_seed[seed] for seed in shared})


def compute_score(
    metric: str,
    runs: Mapping[int, Sequence[WindowRecord]],
    joint: Mapping[int, Sequence[WindowRecord]] | None = None,
) -> Score:
    """Compute a score from the records of each seed; forgetting needs those of ``joint``, too."""
    if metric == FORGETTING:
        upper = joint or {}
        shared = {seed: records for seed, records in runs.items() if seed in upper}
        by_seed = {s: summarize(r, joint=upper[s])[FORGETTING] for s, r in shared.items()}
        windows = {s: forgetting_by_window(r, upper[s]) for s, r in shared.items()}
        return Score(by_seed, {(s, w): v for s, each in windows.items() for w, v in each.items()})
    by_window = {
        (seed, record.window): value_after(metric, record)
        for seed, records in runs.items()
        for record in records
    }
    return Score({seed: summarize(records)[metric] for seed, records in runs.items()}, by_window)


def find_best(scores: Mapping[Name, Score], metric: str) -> list[Name]:
    """Find the rows with the best mean; none if no row has a mean.

    >>> find_best({"a": Score({0: 0.1}), "b": Score({0: 0.3}), "c": Score({0: 0.3})}, "na")
    ['b', 'c']
    """
    means = {name: each.mean for name, each in scores.items() if not math.isnan(each.mean)}
    choose = max if METRICS[metric].higher_is_better else min
    best = choose(means.values(), default=math.nan)
    return [name for name, value in means.items() if value == best]


def adjust_p_values(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Correct p-values for their number by Holm's method; one that is NaN stays so.

    The smallest is multiplied by their number, the next by one less, and so on. None falls below
    the one before it.

    >>> {k: round(v, 3) for k, v in adjust_p_values({"a": 0.03, "b": 0.01, "c": 0.04}).items()}
    {'a': 0.06, 'b': 0.03, 'c': 0.06}
    """
    defined = {name: p for name, p in p_values.items() if not math.isnan(p)}
    adjusted, largest = dict(p_values), 0.0
    for rank, name in enumerate(sorted(defined, key=lambda name: defined[name])):
        largest = max(largest, min(1.0, (len(defined) - rank) * defined[name]))
        adjusted[name] = largest
    return adjusted


def compute_p_value(one: Score, other: Score) -> float:
    """Test whether two learners differ: Wilcoxon's signed-rank test, two-sided.

    Differences are paired over the seeds and windows that both learners have. The p-value is NaN
    if there are none.

    >>> high = Score({0: 0.9}, {(0, window): 0.9 - window / 100 for window in range(8)})
    >>> low = Score({0: 0.5}, {(0, window): 0.5 - window / 50 for window in range(8)})
    >>> round(compute_p_value(high, low), 4)
    0.0078
    """
    shared = one.by_window.keys() & other.by_window.keys()
    differences = [one.by_window[place] - other.by_window[place] for place in sorted(shared)]
    differences = [difference for difference in differences if not math.isnan(difference)]
    if not differences:
        return math.nan
    if not any(differences):
        return 1.0
    return float(wilcoxon(differences).pvalue)
