from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cilf.core import Detection
from cilf.errors import BadConfig, BadInput
from cilf.query import name_clusters, propagate_answers


def detection(cluster: list[int]) -> Detection:
    n = len(cluster)
    found = np.array(cluster, dtype=np.int64)
    zeros = np.zeros(n, np.float32)
    return Detection(zeros, np.zeros(n, int), found, max(cluster) + 1, {}, zeros[:, None])


TWO = detection([-1, 0, 0, 0, 0, 0, 1, 1, 1, 1])


def propagate(rows: list[int], answers: list[Any], purity: float = 0.8) -> dict[int, Any]:
    taken, labels = propagate_answers(TWO, rows, answers, purity)
    assert taken.tolist() == sorted(taken.tolist())
    return dict(zip(taken.tolist(), labels.tolist(), strict=True))


def test_the_rest_of_a_cluster_that_agrees_gets_its_label() -> None:
    assert propagate([1, 2, 3], ["a", "a", "a"]) == dict.fromkeys(range(1, 6), "a")
    assert propagate([1, 2, 3, 6], [7, 7, 7, 9]) == dict.fromkeys(range(1, 6), 7) | {6: 9}


def test_those_that_were_asked_about_keep_their_label() -> None:
    found = propagate([1, 2, 3, 4], ["a", "a", "a", "longer"], purity=0.75)
    assert found == {1: "a", 2: "a", 3: "a", 4: "longer", 5: "a"}


@pytest.mark.parametrize(
    ("answers", "purity", "agree"),
    [
        ("aab", 0.8, False), ("aab", 0.66, True), ("aaab", 0.75, True), ("aaab", 0.76, False),
        ("aaa", 1.0, True), ("aabb", 0.5, False), ("abc", 0.1, False),
    ],
)  # fmt: skip
def test_purity_is_the_share_of_the_most_frequent_answer(
    answers: str, purity: float, agree: bool
) -> None:
    found = propagate(list(range(1, len(answers) + 1)), list(answers), purity)
    assert (len(found) == 5) == agree
    assert len(found) == 5 or len(found) == len(answers)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_answers_name_no_cluster(n: int) -> None:
    rows = list(range(1, n + 1))
    assert propagate(rows, ["a"] * n, purity=0.1) == dict.fromkeys(rows, "a")


def test_an_answer_about_a_known_instance_names_no_cluster() -> None:
    assert propagate([0, 1, 2], ["a", "a", "a"]) == dict.fromkeys([0, 1, 2], "a")


def test_without_answers_nothing_is_taught() -> None:
    assert propagate([], []) == {}
    rows, labels = propagate_answers(detection([-1, -1]), [], [])
    assert (len(rows), len(labels)) == (0, 0)


@pytest.mark.parametrize("purity", [0, -0.1, 1.1, True, None, "0.8", float("nan")])
def test_what_is_no_purity_is_refused(purity: Any) -> None:
    with pytest.raises(BadConfig, match="propagate is"):
        propagate_answers(TWO, [1], ["a"], purity)


@pytest.mark.parametrize("rows", [[10], [-1], [1.0], [1, 1], [[1]], ["a"], 3])
def test_what_are_no_rows_is_refused(rows: Any) -> None:
    with pytest.raises(BadInput, match="rows is"):
        propagate_answers(TWO, rows, ["a"] * np.size(rows))


def test_there_is_one_answer_for_each_row() -> None:
    with pytest.raises(BadInput, match="answers has 1 labels for 2 instances"):
        propagate_answers(TWO, [1, 2], ["a"])


# ----------------------------------------------------------------- names of our own


def test_every_cluster_gets_a_name() -> None:
    rows, labels = name_clusters(TWO, ["cat", "dog"])
    assert rows.tolist() == list(range(1, 10))
    assert labels.tolist() == ["novel-1"] * 5 + ["novel-2"] * 4


@pytest.mark.parametrize(
    ("classes", "first"),
    [
        (["novel-1", "cat"], 2), (["novel-3", "novel-1"], 4), (["novel-", "novel-x"], 1),
        (["my novel-9", "novel-9 too"], 1), ([3, 4], 1), ([], 1), (np.array(["novel-12"]), 13),
    ],
)  # fmt: skip
def test_numbers_go_on(classes: Any, first: int) -> None:
    _, labels = name_clusters(TWO, classes)
    assert set(labels.tolist()) == {f"novel-{first}", f"novel-{first + 1}"}


def test_where_nothing_is_new_there_is_nothing_to_name() -> None:
    rows, labels = name_clusters(detection([-1, -1]), ["cat"])
    assert (rows.tolist(), labels.tolist()) == ([], [])


def test_an_empty_cluster_uses_up_no_name() -> None:
    found = detection([0, 2, 2])
    assert name_clusters(found, [])[1].tolist() == ["novel-1", "novel-2", "novel-2"]
