from __future__ import annotations

from cilf.benchmark import SCALES, RunConfig
from cilf.benchmark.costs import COSTS, Pace
from cilf.data import DATASETS
from cilf.learners import LEARNERS


def config(learner: str, **changes: object) -> RunConfig:
    return RunConfig.of(learner=learner, data="digits", scenario="single", **changes)


def test_the_table_names_what_there_is() -> None:
    assert set(COSTS) <= set(SCALES)
    for rows in COSTS.values():
        assert set(rows) <= set(DATASETS)
        for learners in rows.values():
            assert set(learners) <= set(LEARNERS)
            assert min(learners.values()) > 0


def test_what_was_measured_here_counts_more_than_the_table() -> None:
    pace = Pace()
    assert pace.expected(config("dtc")) == COSTS["smoke"]["digits"]["dtc"]
    pace.note(config("dtc", seed=1), 3.0)
    pace.note(config("dtc", seed=2), 5.0)
    assert pace.expected(config("dtc")) == 4.0
    assert pace.expected(config("iforest")) == COSTS["smoke"]["digits"]["iforest"]


def test_a_learner_without_a_time_is_expected_to_take_what_others_do() -> None:
    pace = Pace({"smoke": {"digits": {"iforest": 2.0, "dtc": 6.0}}})
    assert pace.expected(config("cpe")) == 4.0
    pace.note(config("dtc"), 12.0)
    assert pace.expected(config("cpe")) == 7.0


def test_another_scale_is_another_cost() -> None:
    pace = Pace({})
    pace.note(config("dtc"), 3.0)
    assert pace.expected(config("dtc", scale="cpu")) is None
