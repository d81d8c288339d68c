"""How long a cell takes: as measured in the same benchmark, or else in this table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cilf.benchmark.config import RunConfig
from cilf.evaluate.metrics import mean
from cilf.learners import learner_class

# Seconds of a whole 'cilf run' on one core, the mean of both scenarios, by scale, data set and
# learner, as measured by the grids in benchmarks/ and by 'cilf paper'. A learner that is missing is
# assumed to need what the others need; for other data nothing is known.
COSTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "smoke": {
        "digits": {
            "iforest": 5, "one-svm": 5, "lacu-svm": 6, "senc-mas": 6, "odin-cnn": 8, "cfo": 12,
            "cpe": 10, "dtc": 15, "dnn-base": 7, "dnn-l2": 7, "dnn-ewc": 8, "imm-mean": 8,
            "imm-mode": 8, "den": 10, "cilf": 9, "joint": 10,
        },
    },
    "cpu": {
        "mnist": {
            "cilf": 51, "iforest": 22, "one-svm": 24, "lacu-svm": 110, "senc-mas": 26,
            "odin-cnn": 92, "cfo": 160, "cpe": 104, "dtc": 176, "dnn-base": 60, "dnn-l2": 60,
            "dnn-ewc": 52, "imm-mean": 80, "imm-mode": 80, "den": 75, "joint": 200,
        },
        "cifar10": {
            "cilf": 99, "odin-cnn": 128, "cfo": 250, "cpe": 80, "dtc": 120, "dnn-base": 42,
            "dnn-l2": 42, "dnn-ewc": 46, "imm-mean": 45, "imm-mode": 41, "joint": 151,
        },
        "cifar50": {"cilf": 195},
        "cifar100": {"cilf": 380},
    },
}  # fmt: skip


class Pace:
    """What cells took so far, and what others will take by that.

    >>> names = {"data": "digits", "scenario": "single"}
    >>> forest, other = (RunConfig.of(learner=name, **names) for name in ("iforest", "one-svm"))
    >>> pace = Pace({})
    >>> pace.expected(forest) is None
    True
    >>> pace.note(forest, 2.0)
    >>> pace.note(forest, 4.0)
    >>> pace.expected(forest), pace.expected(other)
    (3.0, 3.0)
    """

    def __init__(self, costs: Mapping[str, Mapping[str, Mapping[str, float]]] = COSTS) -> None:
        self._costs = costs
        self._seconds: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def note(self, config: RunConfig, seconds: float) -> None:
        """A cell took so long."""
        self._seconds[_kind(config)].append(seconds)

    def expected(self, config: RunConfig) -> float | None:
        """What a cell will take; of a learner without a time, what others take on these data.

        None if there is nothing to tell from.
        """
        scale, data, learner = _kind(config)
        known = dict(self._costs.get(scale, {}).get(data, {}))
        known |= {
            n: mean(took) for (s, d, n), took in self._seconds.items() if (s, d) == (scale, data)
        }
        return known.get(learner, mean(known.values())) if known else None


def _kind(config: RunConfig) -> tuple[str, str, str]:
    return config.scale, config.data, learner_class(config.learner).name
