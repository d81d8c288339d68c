from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cilf.data import DATASETS, Dataset, Split, load_dataset
from cilf.errors import BadConfig, BadInput


def from_arrays(**changes: Any) -> Dataset:
    parts = {
        "X_train": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]],
        "y_train": ["b", "a", "b"],
        "X_test": [[0.5, 0.5]],
        "y_test": ["a"],
    }
    return Dataset.from_arrays("toy", **(parts | changes))


def test_splits_classes_and_shape() -> None:
    dataset = from_arrays()
    assert dataset.classes == ["a", "b"]
    assert dataset.shape == (2,)
    assert (len(dataset.train), len(dataset.test)) == (3, 1)
    assert dataset.train.X.dtype == np.float32
    assert dataset.train.y.tolist() == ["b", "a", "b"]


def test_identities_are_unique_across_splits() -> None:
    dataset = from_arrays()
    assert [*dataset.train.ids, *dataset.test.ids] == ["train/0", "train/1", "train/2", "test/0"]


def test_images_keep_their_bytes() -> None:
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    dataset = Dataset.from_arrays("toy", images, [4, -2], images[:1], [4])
    assert dataset.shape == (4, 5, 3)
    assert dataset.train.X.dtype == np.uint8
    assert dataset.classes == [-2, 4]
    assert all(type(label) is int for label in dataset.classes)


def test_a_class_may_be_missing_from_the_test_split() -> None:
    assert from_arrays(y_test=["b"]).classes == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"y_test": ["c"]}, "'toy'.*['c'].*remove", id="unknown class in test"),
        pytest.param({"X_test": [[1.0]]}, "X_test.*(1,).*(2,)", id="width of test"),
        pytest.param({"X_train": [[0.0, np.nan]] * 3}, "X_train.*nan", id="NaN in train"),
        pytest.param({"X_test": np.zeros((0, 2))}, "X_test is empty", id="empty test"),
        pytest.param({"y_train": ["a", "b"]}, "y_train has 2 labels for 3", id="lengths"),
        pytest.param({"y_test": [1]}, "y_test holds ints.*strings.*convert", id="kind of labels"),
        pytest.param({"y_train": ["a", None, "b"]}, "y_train[1] is missing", id="missing label"),
    ],
)
def test_bad_arrays_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(BadInput, match=pattern):
        from_arrays(**changes)


def test_unknown_classes_are_refused_when_splits_are_given_too() -> None:
    train = Split(np.zeros((2, 1)), np.array([1, 2]), np.array(["a", "b"]))
    test = Split(np.zeros((1, 1)), np.array([3]), np.array(["c"]))
    with pytest.raises(BadInput, match=re.escape("lacks ([3])")):
        Dataset("toy", train, test)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match="data set 'digit': did you mean 'digits'"):
        load_dataset("digit")


def test_every_name_is_the_name_of_its_data_set() -> None:
    assert DATASETS["digits"]().name == load_dataset("digits").name == "digits"


def test_a_digest_is_another_as_soon_as_something_small_is() -> None:
    X, y = np.arange(12.0).reshape(6, 2), ["a", "b"] * 3
    data = Dataset.from_arrays("toy", X, y, X[:2], y[:2])
    same = Dataset.from_arrays("other name", X.copy(), y, X[:2], y[:2])
    assert data.digest() == same.digest()
    moved = X.copy()
    moved[3, 1] += 0.5
    others = [
        Dataset.from_arrays("toy", moved, y, X[:2], y[:2]),
        Dataset.from_arrays("toy", X, ["b", "a"] * 3, X[:2], y[:2]),
        Dataset.from_arrays("toy", X, y, X[1:3], y[:2]),
        replace(data, train=replace(data.train, ids=data.train.ids[::-1])),
    ]
    assert len({data.digest(), *(other.digest() for other in others)}) == 5


def test_a_digest_of_texts_knows_where_one_ends() -> None:
    def texts(*of_train: str) -> Dataset:
        X, y = np.array(of_train, dtype=object), np.array(["a", "b"])
        ids = np.array(["0", "1"])
        return Dataset("toy", Split(X, y, ids), Split(X[:1], y[:1], ids[:1]))

    assert texts("ab", "c").digest() != texts("a", "bc").digest()
