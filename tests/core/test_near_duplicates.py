"""Near-duplicates are found by a threshold that the data set; similar instances are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

from cilf.core.near_duplicates import (
    choose_groups,
    count_near_duplicates,
    find_mixed,
    group_near_duplicates,
    join_groups,
)
from cilf.core.types import Array, Ints

from ..bursts import make_bursts, make_scenes

RNG = np.random.default_rng(0)
TABLES = {
    "iris": load_iris().data,  # whole tenths, so that rows coincide
    "wine": load_wine().data,
    "counts": RNG.integers(0, 5, size=(600, 4)),
    "flags": RNG.integers(0, 2, size=(300, 10)),
    "plane": RNG.normal(size=(500, 2)),
    "line": RNG.random((500, 1)),
    "skewed": RNG.exponential(size=(500, 3)) ** 2,
    "far apart": np.concatenate([RNG.normal(size=(90, 5)) + at for at in (0, 40, 90)]),
    "digits": load_digits().data,
}


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_similar_rows_are_no_near_duplicates(X: Array) -> None:
    assert count_near_duplicates(group_near_duplicates(X)) == 0


def test_similar_images_are_no_near_duplicates() -> None:
    assert count_near_duplicates(group_near_duplicates(load_digits().images)) == 0
    assert count_near_duplicates(group_near_duplicates(make_scenes(200, seed=0))) == 0


def test_copies_in_a_table_are_found() -> None:
    X = load_wine().data
    group = group_near_duplicates(np.concatenate([X, X[:30] * 1.0001]))
    assert np.array_equal(group[len(X) :], group[:30])
    assert count_near_duplicates(group) == 30


@pytest.mark.parametrize(("shift", "least"), [(0, 1.0), (1, 0.9)])
@pytest.mark.parametrize("colour", [True, False])
def test_bursts_are_found_whatever_their_noise_and_shift(
    shift: int, least: float, colour: bool
) -> None:
    scenes = make_scenes(150, seed=1)
    frames, scene = make_bursts(scenes if colour else scenes[..., 0], shift=shift, seed=0)
    group = group_near_duplicates(frames)
    pairs = _same(group) & ~np.eye(len(group), dtype=bool)
    real = _same(scene) & ~np.eye(len(group), dtype=bool)
    assert (pairs & ~real).sum() == 0
    assert (pairs & real).sum() >= least * real.sum()


def _same(group: Ints) -> Array:
    return group[:, None] == group[None]


def test_copies_are_found_among_very_many() -> None:
    X = np.random.default_rng(0).normal(size=(6000, 12))  # more than are compared with each other
    group = group_near_duplicates(X, X[:200] + 0.001)
    assert (group[6000:] == group[:200]).mean() > 0.98
    assert count_near_duplicates(group) <= 200


def test_texts_are_compared_by_their_words() -> None:
    words = np.array([f"w{i}" for i in range(400)])
    texts = [" ".join(RNG.choice(words, 40)) for _ in range(80)]
    again = [f"{text} thanks" for text in texts[:10]]
    group = group_near_duplicates(np.array(texts), np.array(again))
    assert np.array_equal(group[80:], group[:10])
    assert count_near_duplicates(group) == 10


def test_parts_count_together_and_may_be_empty() -> None:
    X = RNG.normal(size=(60, 5))
    whole = group_near_duplicates(np.concatenate([X, X[:5]]))
    assert np.array_equal(whole, group_near_duplicates(X[:40], X[:0], X[40:], X[:5]))
    images = make_scenes(30, seed=0)
    assert len(group_near_duplicates(images[:0], images)) == 30


def test_a_few_instances_and_equal_ones() -> None:
    assert group_near_duplicates(np.zeros((11, 3))).tolist() == list(range(11))
    assert len(group_near_duplicates(np.zeros((50, 3)))) == 50
    assert len(group_near_duplicates(np.zeros((50, 1, 9), dtype=np.uint8))) == 50


def test_groups_are_numbered_by_their_first_instance() -> None:
    X = RNG.normal(size=(90, 20))
    group = group_near_duplicates(X, X)
    assert group.tolist() == [*range(90), *range(90)]


def test_two_groupings_are_joined() -> None:
    a, b = np.array([0, 1, 2, 3, 4]), np.array([5, 5, 6, 6, 7])
    assert join_groups(a, b).tolist() == [0, 0, 2, 2, 4]
    assert join_groups(b, a).tolist() == b.tolist()


def test_whole_groups_are_chosen() -> None:
    group, rows = np.array([0, 0, 0, 1, 1, 2]), np.arange(6)
    assert choose_groups(group, rows, 3, most=5).tolist() == [0, 1, 2]
    assert choose_groups(group, rows[::-1], 2, most=5).tolist() == [5]
    assert choose_groups(group[:5], rows[:5], 1, most=4).tolist() == [3, 4]
    assert choose_groups(group[:3], rows[:3], 1, most=2).tolist() == []
    assert choose_groups(group, rows[:0], 1, most=5).tolist() == []


def test_the_same_instance_in_two_classes() -> None:
    assert find_mixed(np.array([0, 0, 1, 2, 2]), np.array(list("abccc"))).tolist() == [
        True, True, False, False, False,
    ]  # fmt: skip
