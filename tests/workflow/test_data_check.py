from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.core.types import Array
from cilf.data import Dataset
from cilf.workflow.data_check import check_data

RNG = np.random.default_rng(0)


def dataset(X: Array, y: Array, X_test: Array, y_test: Array) -> Dataset:
    return Dataset.from_arrays("here", X, y, X_test, y_test)


def rows(n: int) -> tuple[Array, Array]:
    return RNG.normal(size=(n, 20)), np.repeat(["a", "b"], n // 2)


def test_nothing_is_said_of_clean_data() -> None:
    report = check_data(dataset(*rows(80), *rows(20)))
    assert (report.n_near_duplicates, report.n_across, report.problems) == (0, 0, [])


def test_copies_in_a_stated_test_split_are_counted() -> None:
    (X, y), (X_test, y_test) = rows(80), rows(20)
    X_test[:3] = X[:3] + 0.001
    report = check_data(dataset(X, y, X_test, y_test))
    assert (report.n_near_duplicates, report.n_across) == (3, 3)
    assert report.problems == [
        "3 of 100 instances are near-duplicates, and 3 of 20 test instances have some in the "
        "training split: the accuracy is overestimated"
    ]
    X[:3] = X[3:6]
    report = check_data(dataset(X, y, *rows(20)))
    assert report.problems == [
        "3 of 100 instances are near-duplicates: each is on one side of the split with the "
        "instances that it is like"
    ]


def test_an_instance_in_two_classes_is_named() -> None:
    (X, y), test = rows(80), rows(20)
    X[0] = X[79]
    assert check_data(dataset(X, y, *test)).problems[1] == (
        "1 instance in more than one class (train/0 (a) and train/79 (b)): correct the labels"
    )


def test_small_classes_and_scores_on_almost_nothing() -> None:
    y = rows(80)[1]
    few = np.concatenate([y, ["c"] * 6])
    data = dataset(RNG.normal(size=(86, 20)), few, RNG.normal(size=(11, 20)), [*"aaaaabbbbbc"])
    assert check_data(data).problems == [
        "1 class with fewer than 10 instances ('c': 7): add more",
        "1 class with a score on fewer than 5 different test instances ('c': 1): the score "
        "says little",
    ]


@pytest.mark.parametrize(
    ("column", "is_found"),
    [
        (np.arange(100), True),
        (RNG.permutation(100) + 7000, True),
        (np.arange(100) // 2, False),
        (np.arange(100) * 50, False),
        (np.arange(100) + 0.5, False),
    ],
)
def test_a_column_that_numbers_rows_is_named(column: Array, is_found: bool) -> None:
    (X, y), (X_test, y_test) = rows(80), rows(20)
    X[:, 4], X_test[:, 4] = column[:80], column[80:]
    data = dataset(X, y, X_test, y_test)
    assert check_data(data).problems == []  # an array has no columns with names
    named = replace(data, columns=tuple(f"c{i}" for i in range(20)))
    problem = (
        "1 column with another whole number in each row ('c4'): if it is an id, remove it or call "
        "it 'id'"
    )
    assert check_data(named).problems == ([problem] if is_found else [])


def test_a_fit_says_and_keeps_what_was_found(
    points: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = (points / "known.csv").read_text().splitlines()
    again = [f"copy-{i},{line.partition(',')[2]}" for i, line in enumerate(lines[1:3])]
    (points / "few.csv").write_text("\n".join([*lines[:3], *lines[-8:], *again]))
    event = workflow.fit("few.csv", "few", learner="iforest").event
    assert any("with fewer than 10 instances" in problem for problem in event.about["problems"])
    assert {*event.about["problems"]} <= {f.removeprefix("few.csv: ") for f in caplog.messages}
    assert event.about["near_duplicates"] >= 0
