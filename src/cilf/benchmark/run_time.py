"""The expected run time of a cell: measured in the same benchmark, from a table, or forecast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from cilf.benchmark.config import RunConfig
from cilf.benchmark.forecast import Forecaster, Speed
from cilf.evaluate.metrics import mean
from cilf.learners import learner_class

# Seconds of a whole run on one core, the mean of both scenarios, by scale, data set and learner.
# 'cilf paper' measured them under the protocol "found", those of joint under "given". The time of a
# learner that is missing is forecast.
SECONDS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "smoke": {
        "digits": {
            "iforest": 1, "one-svm": 1, "lacu-svm": 2, "senc-mas": 1, "odin-cnn": 2, "cfo": 3,
            "cpe": 3, "dtc": 5, "dnn-base": 2, "dnn-l2": 2, "dnn-ewc": 2, "imm-mean": 2,
            "imm-mode": 2, "den": 4, "cilf": 2, "cilf-paper": 5, "joint": 4, "never": 1,
        },
    },
    "cpu": {
        "mnist": {
            "iforest": 22, "one-svm": 24, "lacu-svm": 110, "senc-mas": 26, "odin-cnn": 48,
            "cfo": 160, "cpe": 47, "dtc": 120, "dnn-base": 60, "dnn-l2": 60, "dnn-ewc": 52,
            "imm-mean": 80, "imm-mode": 80, "den": 75, "cilf": 45, "cilf-paper": 220,
            "joint": 200, "never": 25,
        },
        "cifar10": {
            "odin-cnn": 50, "cfo": 250, "cpe": 60, "dtc": 150, "dnn-base": 42, "dnn-l2": 42,
            "dnn-ewc": 46, "imm-mean": 45, "imm-mode": 41, "cilf": 85, "cilf-paper": 300,
            "joint": 270, "never": 28,
        },
        "cifar50": {"cilf": 195},
        "cifar100": {"cilf": 380},
    },
}  # fmt: skip


class RunTime:
    """Estimates the seconds of a cell from those of finished cells, a table or a forecast.

    >>> names = {"data": "digits", "scenario": "single"}
    >>> forest, other = (RunConfig.of(learner=name, **names) for name in ("iforest", "one-svm"))
    >>> run_time = RunTime({})
    >>> run_time.estimate(forest) is None
    True
    >>> run_time.add(forest, 2.0)
    >>> run_time.add(forest, 4.0)
    >>> run_time.estimate(forest), run_time.estimate(other)
    (3.0, 3.0)
    """

    def __init__(self, table: Mapping[str, Mapping[str, Mapping[str, float]]] = SECONDS) -> None:
        self._table = table
        self._seconds: _Times = defaultdict(list)
        self._forecast: _Times = defaultdict(list)
        self._forecaster = Forecaster()

    def add(self, config: RunConfig, seconds: float) -> None:
        """Add the seconds that a cell took."""
        self._seconds[_key(config)].append(seconds)

    def forecast(self, configs: Iterable[RunConfig]) -> None:
        """Forecast the seconds of those cells about which nothing is known.

        It takes some seconds for each network: its speed is measured on this machine.
        """
        unknown = {
            (*_key(config), config.scenario): config
            for config in configs
            if not self._is_known(config)
        }
        for config, seconds in self._forecaster.forecast(unknown.values()):
            self._forecast[_key(config)].append(seconds)

    @property
    def speeds(self) -> list[Speed]:
        """The speeds of networks that forecasts were made from."""
        return self._forecaster.speeds

    def _is_known(self, config: RunConfig) -> bool:
        key = _key(config)
        in_table = key.learner in self._table.get(key.scale, {}).get(key.data, {})
        return in_table or key in self._seconds or key in self._forecast

    def estimate(self, config: RunConfig) -> float | None:
        """The expected seconds of a cell; None if no time is known for its data and scale.

        A time under the same protocol comes first, since "given" detects nothing. A learner without
        a time is expected to take the median of the others: ``joint`` may take a hundred times as
        long as they do.
        """
        key = _key(config)
        known = (
            _mean_by_learner(self._seconds, key._replace(protocol=None))
            | _mean_by_learner(self._forecast, key)
            | dict(self._table.get(key.scale, {}).get(key.data, {}))
            | _mean_by_learner(self._seconds, key)
        )
        return known.get(key.learner, median(known.values())) if known else None


class _Key(NamedTuple):
    """What the seconds of a cell depend on."""

    scale: str
    data: str
    protocol: str | None  # None: any
    learner: str


_Times = dict[_Key, list[float]]


def _mean_by_learner(seconds: _Times, key: _Key) -> dict[str, float]:
    """The mean seconds of every learner on the same data, at the same scale and protocol."""
    by_learner: dict[str, list[float]] = defaultdict(list)
    for other, took in seconds.items():
        if key.protocol in (None, other.protocol) and key[:2] == other[:2]:
            by_learner[other.learner] += took
    return {learner: mean(took) for learner, took in by_learner.items()}


def _key(config: RunConfig) -> _Key:
    name = learner_class(config.learner).name
    return _Key(config.scale, config.data, config.protocol, name)
