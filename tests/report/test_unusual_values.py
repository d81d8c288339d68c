from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import median_abs_deviation

from cilf.report.unusual_values import KnownValues, list_unusual, summarize_known


def test_classes_are_summarized_by_median_and_robust_deviation() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (41, 3)), rng.normal(50, 2, (30, 3))]).astype(np.float32)
    y = np.repeat(["a", "b"], [41, 30])
    known = summarize_known(X, y)
    for place, label in enumerate("ab"):
        members = X[y == label]
        assert known.medians[place] == pytest.approx(np.median(members, axis=0))
        wanted = median_abs_deviation(members, axis=0, scale="normal")
        assert known.spreads[place] == pytest.approx(
            np.maximum(wanted, 0.05 * X.std(axis=0)), rel=1e-4
        )


def test_a_value_is_unusual_if_it_is_so_in_every_class() -> None:
    known = KnownValues(np.array([[0.0, 0.0], [100.0, 0.0]]), np.array([[1.0, 1.0], [10.0, 2.0]]))
    found = list_unusual(np.array([50.0, 9.0]), known, ["size", "weight"], most=5)
    assert [(value.column, value.distance) for value in found] == [("size", 5.0), ("weight", 4.5)]
    assert (found[0].low, found[0].high) == (80.0, 120.0)
    assert list_unusual(np.array([97.0, 1.0]), known, ["size", "weight"], most=5) == []
    assert len(list_unusual(np.array([50.0, 9.0]), known, ["size", "weight"], most=1)) == 1


def test_a_column_that_never_varied_has_no_spread() -> None:
    known = summarize_known(np.ones((4, 1)), np.array(["a"] * 4))
    (found,) = list_unusual(np.array([2.0]), known, ["flag"], most=5)
    assert (found.low, found.high, found.distance) == (1.0, 1.0, 99.0)
    assert list_unusual(np.array([1.0]), known, ["flag"], most=5) == []


def test_without_known_instances_nothing_is_unusual() -> None:
    known = summarize_known(np.zeros((0, 2)), np.zeros(0, dtype=str))
    assert list_unusual(np.ones(2), known, ["a", "b"], most=5) == []
