from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from cilf.benchmark import SCALES, RunConfig, run_time
from cilf.benchmark.run_time import SECONDS, RunTime
from cilf.data import DATASETS
from cilf.learners import LEARNERS


def config(learner: str, **changes: Any) -> RunConfig:
    names = {"data": "digits", "scenario": "single"}
    return RunConfig.of(learner=learner, **(names | changes))


def test_the_table_names_what_there_is() -> None:
    assert set(SECONDS) <= set(SCALES)
    for rows in SECONDS.values():
        assert set(rows) <= set(DATASETS)
        for learners in rows.values():
            assert set(learners) <= set(LEARNERS)
            assert min(learners.values()) > 0


def test_what_was_measured_here_counts_more_than_the_table() -> None:
    run_time = RunTime()
    assert run_time.estimate(config("dtc")) == SECONDS["smoke"]["digits"]["dtc"]
    run_time.add(config("dtc", seed=1), 3.0)
    run_time.add(config("dtc", seed=2), 5.0)
    assert run_time.estimate(config("dtc")) == 4.0
    assert run_time.estimate(config("iforest")) == SECONDS["smoke"]["digits"]["iforest"]


def test_a_learner_without_a_time_is_expected_to_take_what_others_do() -> None:
    run_time = RunTime({"smoke": {"digits": {"iforest": 2.0, "dtc": 6.0}}})
    assert run_time.estimate(config("cpe")) == 4.0
    run_time.add(config("dtc"), 12.0)
    assert run_time.estimate(config("cpe")) == 7.0
    run_time.add(config("joint"), 1000.0)
    assert run_time.estimate(config("cpe")) == 12.0


def test_another_scale_is_another_cost() -> None:
    run_time = RunTime({})
    run_time.add(config("dtc"), 3.0)
    assert run_time.estimate(config("dtc", scale="cpu")) is None


class FakeForecaster:
    """Forecasts 100 seconds for the first cell, 101 for the second, and so on."""

    def __init__(self) -> None:
        self.asked: list[RunConfig] = []

    def forecast(self, configs: Iterable[RunConfig]) -> Iterator[tuple[RunConfig, float]]:
        for asked in configs:
            self.asked.append(asked)
            yield asked, 99.0 + len(self.asked)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeForecaster:
    made = FakeForecaster()
    monkeypatch.setattr(run_time, "Forecaster", lambda: made)
    return made


def test_a_forecast_is_made_where_nothing_is_known(fake: FakeForecaster) -> None:
    made = RunTime({})
    cells = [config("dtc"), config("dtc", seed=1), config("cilf")]
    made.forecast(cells)
    assert [asked.learner for asked in fake.asked] == ["dtc", "cilf"]  # once for all seeds
    assert made.estimate(config("dtc")) == 100.0
    assert made.estimate(config("iforest")) == 100.5
    made.forecast(cells)
    assert len(fake.asked) == 2
    made.add(config("dtc"), 7.0)
    assert made.estimate(config("dtc")) == 7.0
    assert made.estimate(config("cilf")) == 101.0


def test_a_forecast_is_the_mean_of_both_scenarios(fake: FakeForecaster) -> None:
    made = RunTime({})
    made.forecast([config("dtc"), config("dtc", scenario="multiple")])
    assert made.estimate(config("dtc")) == 100.5


def test_protocols_have_forecasts_and_times_of_their_own(fake: FakeForecaster) -> None:
    found, given = config("cilf-paper"), config("cilf-paper", protocol="given")
    made = RunTime({})
    made.forecast([found, given])
    assert (made.estimate(found), made.estimate(given)) == (100.0, 101.0)
    made.add(found, 500.0)
    assert (made.estimate(found), made.estimate(given)) == (500.0, 101.0)


def test_a_time_under_the_other_protocol_is_better_than_none() -> None:
    made = RunTime({})
    made.add(config("iforest"), 5.0)
    assert made.estimate(config("iforest", protocol="given")) == 5.0


def test_no_forecast_is_made_where_times_are_known(fake: FakeForecaster) -> None:
    made = RunTime()
    made.forecast([config("dtc")])
    timed = RunTime({})
    timed.add(config("dtc"), 7.0)
    timed.forecast([config("dtc", seed=1)])
    assert fake.asked == []
