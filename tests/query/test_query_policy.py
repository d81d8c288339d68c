from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cilf.core import Detection, Window
from cilf.errors import BadConfig
from cilf.query import QueryPolicy

N = 9
CLUSTER = np.array([-1, 0, 0, 0, 0, 1, 1, 1, 1])
FOUND = Detection(
    np.ones(N, np.float32), np.zeros(N, int), CLUSTER, 2, {}, np.zeros((N, 1), np.float32)
)
WINDOW = Window(1, np.zeros((N, 1)), np.array(list("aabbbcccc")), ("b", "c"), ("a",))


def label(**policy: Any) -> Any:
    return QueryPolicy(**policy).label_window(WINDOW, FOUND, ["a", "novel-2"], seed=0)


def test_answers_are_the_truth_of_the_queried_rows() -> None:
    labelled = label(query=2)
    assert labelled.rows.tolist() == labelled.queried.tolist()
    assert labelled.labels.tolist() == WINDOW.y[labelled.rows].tolist()
    assert np.bincount(CLUSTER[labelled.rows]).tolist() == [2, 2]
    assert not labelled.propagated.any()


def test_propagated_labels_are_told_from_answers() -> None:
    labelled = label(query=3, propagate=0.9)
    of_second = labelled.rows >= 5
    assert labelled.rows[of_second].tolist() == [5, 6, 7, 8]
    assert labelled.labels[of_second].tolist() == ["c"] * 4
    assert labelled.propagated.sum() == len(labelled.rows) - len(labelled.queried) >= 1


def test_self_queries_nobody_and_repeats_no_name() -> None:
    labelled = label(query="self")
    assert len(labelled.queried) == 0
    assert labelled.labels.tolist() == ["novel-3"] * 4 + ["novel-4"] * 4
    assert labelled.propagated.all()


@pytest.mark.parametrize("n_novel", ["True", -1, 1.5, True])
def test_a_number_of_novel_classes_is_whole_or_true(n_novel: Any) -> None:
    with pytest.raises(BadConfig, match="n_novel is"):
        QueryPolicy(n_novel=n_novel)


def test_self_takes_no_strategy() -> None:
    with pytest.raises(BadConfig, match="nobody is queried then"):
        QueryPolicy(query="self", strategy="mixed")
