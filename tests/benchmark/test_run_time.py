from __future__ import annotations

from cilf.benchmark import SCALES, RunConfig
from cilf.benchmark.run_time import SECONDS, RunTime
from cilf.data import DATASETS
from cilf.learners import LEARNERS


def config(learner: str, **changes: object) -> RunConfig:
    return RunConfig.of(learner=learner, data="digits", scenario="single", **changes)


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


def test_another_scale_is_another_cost() -> None:
    run_time = RunTime({})
    run_time.add(config("dtc"), 3.0)
    assert run_time.estimate(config("dtc", scale="cpu")) is None
