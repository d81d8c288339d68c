from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits as sklearn_digits

from cilf.data import Dataset, load_dataset


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset("digits")


def test_images_and_labels(digits: Dataset) -> None:
    assert digits.classes == list(range(10))
    assert digits.shape == (8, 8)
    assert digits.train.X.dtype == digits.test.X.dtype == np.uint8
    assert (digits.train.X.min(), digits.train.X.max()) == (0, 255)


def test_the_splits_are_all_of_the_digits_and_do_not_overlap(digits: Dataset) -> None:
    train, test = set(digits.train.ids.tolist()), set(digits.test.ids.tolist())
    assert train & test == set()
    assert train | test == {f"digits/{row}" for row in range(1797)}
    assert (len(digits.train), len(digits.test)) == (1437, 360)


def test_an_identity_is_the_row_in_the_source(digits: Dataset) -> None:
    source = sklearn_digits()
    for split in (digits.train, digits.test):
        rows = [int(identity.removeprefix("digits/")) for identity in split.ids]
        assert split.y.tolist() == source.target[rows].tolist()
        grey_levels = np.round(split.X / 255 * 16)
        assert (grey_levels == source.images[rows]).all()


def test_every_class_has_a_fifth_in_the_test_split(digits: Dataset) -> None:
    test, train = np.bincount(digits.test.y), np.bincount(digits.train.y)
    assert np.abs(test - 0.2 * (test + train)).max() <= 1


def test_loading_twice_gives_the_same(digits: Dataset) -> None:
    again = load_dataset("digits")
    assert (again.train.X == digits.train.X).all()
    assert again.test.ids.tolist() == digits.test.ids.tolist()
