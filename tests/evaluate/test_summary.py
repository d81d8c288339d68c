from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from cilf.core import WindowRecord
from cilf.errors import BadInput
from cilf.evaluate import summarize
from cilf.evaluate.metric_table import METRICS, PLAN

NAN = math.nan
OF_WINDOW = [name for name, metric in METRICS.items() if metric.of_window]
SIZES = {0: 4, 1: 1, 2: 2, 3: 1}  # classes in each group


def record(window: int, holdout: Mapping[int, float], **values: Any) -> WindowRecord:
    plain = {name: 0.5 for name in OF_WINDOW if not name.startswith(PLAN)}
    plain |= {"n_novel_true": 2, "n_novel_planned": 1, "n_novel_found": 2, "n_queried": 10}
    times = {"seconds_detect": 1.0, "seconds_update": 2.0}
    fields = plain | times | values
    return WindowRecord(
        extra={name: 0.25 for name in OF_WINDOW if name.startswith(PLAN)},
        window=window,
        n_known=3,
        holdout_accuracy=holdout,
        holdout_classes={group: SIZES[group] for group in holdout},
        **fields,
    )


RECORDS = [
    record(1, {0: 1.0, 1: 0.8}, na=0.9),
    record(2, {0: 0.9, 1: 0.6, 2: NAN}, na=NAN, n_novel_true=0, n_novel_found=1, auroc=NAN),
    record(3, {0: 0.7, 1: 0.8, 3: 0.5}, na=0.6, n_novel_found=5),
]


def test_means_skip_what_is_undefined() -> None:
    summary = summarize(RECORDS)
    assert summary["na"] == pytest.approx(0.75)
    assert summary["auroc"] == 0.5
    assert summary["plan_auroc"] == 0.25
    assert set(OF_WINDOW) < set(summary)


def test_counting() -> None:
    summary = summarize(RECORDS)
    assert summary["k_exact"] == pytest.approx(1 / 3)
    assert summary["k_within_one"] == pytest.approx(2 / 3)
    assert summary["k_error"] == pytest.approx((0 + 1 + 3) / 3)
    short = [*RECORDS, record(4, {0: 1.0}, n_novel_found=0)]
    assert summarize(short)["k_error"] == pytest.approx((0 + 1 + 3 - 2) / 4)
    assert summarize(short)["k_abs_error"] == pytest.approx((0 + 1 + 3 + 2) / 4)


def test_counting_has_both_readings_and_skips_windows_without_a_detection() -> None:
    summary = summarize([*RECORDS, record(4, {0: 1.0}, n_novel_found=None)])
    assert summary["k_error"] == pytest.approx((0 + 1 + 3) / 3)
    assert summary["plan_k_error"] == pytest.approx((1 + 0 + 4) / 3)
    assert summary["n_exact"] == 1


def test_the_ending_is_that_of_the_last_window() -> None:
    summary = summarize(RECORDS)
    assert summary["holdout_first"] == 0.7
    assert summary["holdout_new"] == pytest.approx((0.8 + 0.5) / 2)
    assert summary["holdout_all"] == pytest.approx((4 * 0.7 + 0.8 + 0.5) / 6)


def test_all_classes_count_the_same_however_they_arrived() -> None:
    undefined = record(1, {0: 1.0, 1: NAN, 2: 0.4})
    assert summarize([undefined])["holdout_all"] == pytest.approx((4 * 1.0 + 2 * 0.4) / 6)


def test_totals() -> None:
    summary = summarize(RECORDS)
    assert (summary["n_windows"], summary["n_queried"]) == (3, 30)
    assert (summary["seconds_detect"], summary["seconds_update"]) == (3.0, 6.0)
    assert (summary["seconds"], summary["n_exact"]) == (9.0, 1)


def test_forgetting() -> None:
    joint = [
        record(1, {0: 1.0, 1: 1.0}),
        record(2, {0: 1.0, 1: 1.0}),
        record(3, {0: 0.9, 1: 0.9, 3: 0.9}),
    ]
    summary = summarize(RECORDS, joint)
    best = (1.0 + 1.0 + 0.9) / 3
    mine = (0.9 + 0.75 + 2.0 / 3) / 3
    assert summary["forgetting"] == pytest.approx((best - mine) / best)
    # group 0 falls from 1.0 to 0.7, group 1 is back at its best, group 3 has just come
    assert summary["forgetting_from_best"] == pytest.approx(0.3 / 3)
    assert "forgetting" not in summarize(RECORDS)


def test_joint_must_be_of_the_same_windows() -> None:
    with pytest.raises(BadInput, match="joint has 2 records for 3"):
        summarize(RECORDS, RECORDS[:2])


def test_nothing_is_undefined_not_an_error() -> None:
    summary = summarize([])
    assert summary["n_windows"] == 0
    assert all(math.isnan(summary[name]) for name in (*OF_WINDOW, "k_exact", "holdout_all"))


def test_labels_nobody_gave_are_weighed_by_their_number() -> None:
    assert summarize(RECORDS)["n_propagated"] == 0
    assert math.isnan(summarize(RECORDS)["propagated_right"])
    some = record(4, {0: 1.0}, n_propagated=30, propagated_right=1.0)
    few = record(5, {0: 1.0}, n_propagated=10, propagated_right=0.6)
    summary = summarize([*RECORDS, some, few])
    assert (summary["n_propagated"], summary["propagated_right"]) == (40, pytest.approx(0.9))
