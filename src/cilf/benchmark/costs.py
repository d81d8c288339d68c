"""How long a cell takes: as measured in the same benchmark, or else in this table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cilf.benchmark.config import RunConfig
from cilf.evaluate.summary import mean
from cilf.learners import learner_class

# Seconds of a whole 'cilf run' on one core, the mean of both scenarios, by scale, data set and
# learner: as benchmarks/detectors.py and benchmarks/study.py measured them (the tables in
# docs/methods). What is not here is not known.
COSTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "smoke": {
        "digits": {
            "iforest": 5, "one-svm": 5, "lacu-svm": 6, "senc-mas": 6, "odin-cnn": 8, "cfo": 12,
            "cpe": 10, "dtc": 15,
        },
    },
    "cpu": {
        "mnist": {
            "cilf": 51, "iforest": 22, "one-svm": 24, "lacu-svm": 110, "senc-mas": 26,
            "odin-cnn": 92, "cfo": 160, "cpe": 104, "dtc": 176,
        },
        "cifar10": {"cilf": 99},
        "cifar50": {"cilf": 195},
        "cifar100": {"cilf": 380},
    },
}  # fmt: skip


class Pace:
    """What cells took so far, and what others will take by that.

    >>> names = {"data": "digits", "scenario": "single"}
    >>> forest, other = (RunConfig.of(learner=name, **names) for name in ("iforest", "one-svm"))
    >>> pace = Pace({})
    >>> pace.note(forest, 2.0)
    >>> pace.note(forest, 4.0)
    >>> pace.expected(forest), pace.expected(other)
    (3.0, None)
    """

    def __init__(self, costs: Mapping[str, Mapping[str, Mapping[str, float]]] = COSTS) -> None:
        self._costs = costs
        self._seconds: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def note(self, config: RunConfig, seconds: float) -> None:
        """A cell took so long."""
        self._seconds[_kind(config)].append(seconds)

    def expected(self, config: RunConfig) -> float | None:
        """What a cell will take; None if there is nothing to tell from."""
        kind = _kind(config)
        if kind in self._seconds:
            return mean(self._seconds[kind])
        scale, data, learner = kind
        return self._costs.get(scale, {}).get(data, {}).get(learner)


def _kind(config: RunConfig) -> tuple[str, str, str]:
    return config.scale, config.data, learner_class(config.learner).name
