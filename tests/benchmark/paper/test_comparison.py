from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from cilf.benchmark.paper.comparison import (
    Score,
    adjust_p_values,
    compute_p_value,
    compute_score,
    find_best,
)
from cilf.core import WindowRecord


def score_of(values: list[float]) -> Score:
    return Score({0: float(np.nanmean(values))}, {(0, i): value for i, value in enumerate(values)})


def exact_p_value(differences: list[float]) -> float:
    """By all ways the signs could have fallen: slow, and right by definition."""
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    total = ranks.sum()
    positive = ranks[np.array(differences) > 0].sum()
    least = min(positive, total - positive)
    signs = itertools.product([0, 1], repeat=len(differences))
    sums = np.array([np.dot(sign, ranks) for sign in signs])
    return float(min(1.0, 2 * (sums <= least).mean()))


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_that_of_all_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(0.2, 1, size=8).tolist(), rng.normal(0, 1, size=8).tolist()
    differences = [a - b for a, b in zip(one, other, strict=True)]
    expected = exact_p_value(differences)
    assert compute_p_value(score_of(one), score_of(other)) == pytest.approx(expected)


def test_only_shared_and_defined_windows_are_compared() -> None:
    one = Score({0: 1.0}, {(0, w): 0.9 + w / 100 for w in range(1, 9)} | {(0, 99): 5.0})
    other = Score({0: 1.0}, {(0, w): 0.5 for w in range(1, 9)} | {(0, 50): math.nan})
    assert compute_p_value(one, other) == pytest.approx(2 / 2**8)


def test_equal_scores_do_not_differ_and_nothing_is_not_a_number() -> None:
    same = score_of([0.5, 0.6])
    assert compute_p_value(same, same) == 1.0
    assert math.isnan(compute_p_value(same, Score({}, {})))


def test_less_forgetting_is_better() -> None:
    scores = {"a": Score({0: 0.1}), "b": Score({0: 0.3}), "none": Score({})}
    assert (find_best(scores, "forgetting"), find_best(scores, "na")) == (["a"], ["b"])
    assert find_best({"none": Score({})}, "na") == []


def record(window: int, *accuracy: float) -> WindowRecord:
    blank = dict.fromkeys((field.name for field in dataclasses.fields(WindowRecord)), 0)
    holdout = dict(enumerate(accuracy))
    groups = {"holdout_accuracy": holdout, "holdout_classes": dict.fromkeys(holdout, 1)}
    return WindowRecord(**{**blank, "extra": {}, "window": window, **groups})  # type: ignore[arg-type]


def test_forgetting_is_paired_over_seeds_and_windows() -> None:
    joint = {s: [record(w, 0.8, 0.9 - s / 10) for w in (1, 2, 3)] for s in (0, 1)}
    runs = {s: [record(w, 0.8 - w / 10, 0.5) for w in (1, 2, 3)] for s in (0, 1)}
    found = compute_score("forgetting", runs, joint)
    assert sorted(found.by_window) == [(s, w) for s in (0, 1) for w in (1, 2, 3)]
    for seed, value in found.by_seed.items():
        over_windows = [v for (s, _), v in found.by_window.items() if s == seed]
        assert value == pytest.approx(np.mean(over_windows))
    assert found.by_window[1, 3] == pytest.approx((0.8 - 0.5) / 0.8)
    # Six pairs suffice for a mark, which five seeds alone never would.
    assert compute_p_value(compute_score("forgetting", joint, joint), found) == pytest.approx(
        2 / 2**6
    )


def test_seeds_without_a_value_count_neither_for_mean_nor_deviation_nor_number() -> None:
    found = Score({0: 0.2, 1: math.nan, 2: 0.4})
    assert (found.mean, found.std) == (pytest.approx(0.3), pytest.approx(0.02**0.5))
    assert found.n_seeds == 2


def test_holms_correction_is_that_of_its_definition() -> None:
    p_values = {"a": 0.004, "b": 0.03, "c": 0.012, "d": 0.2, "e": math.nan}
    adjusted = adjust_p_values(p_values)
    # Sorted: 0.004 x 4, 0.012 x 3, 0.03 x 2, 0.2 x 1, none below the one before.
    expected = {"a": 0.016, "c": 0.036, "b": 0.06, "d": 0.2}
    assert {k: v for k, v in adjusted.items() if k != "e"} == pytest.approx(expected)
    assert math.isnan(adjusted["e"])
    assert adjust_p_values({"a": 0.6, "b": 0.9, "c": 0.5}) == {"a": 1.0, "b": 1.0, "c": 1.0}
