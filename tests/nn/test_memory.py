from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cilf.core.types import Ints
from cilf.nn.memory import Memory, even_quotas, set_aside

NOTHING = np.zeros(0, dtype=np.int64)
some_labels = st.lists(st.integers(0, 4), min_size=1, max_size=40)


def remembered(labels: list[int]) -> Memory:
    """A memory in which X tells which instance it is."""
    y = np.array(labels, dtype=np.int64)
    return Memory(np.arange(len(y), dtype=np.float32)[:, None], y)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def counts(y: Ints) -> dict[int, int]:
    return Counter(y.tolist())


@given(st.integers(0, 200), st.integers(1, 20))
def test_quotas_add_up_and_differ_by_one_at_most(size: int, n_classes: int) -> None:
    quotas = even_quotas(size, n_classes)
    assert len(quotas) == n_classes
    assert sum(quotas) == size
    assert max(quotas) - min(quotas) <= 1


def test_no_classes_have_no_quotas() -> None:
    assert even_quotas(10, 0) == []


@given(some_labels, st.integers(0, 50), st.integers(0, 100))
def test_rebalancing_gives_each_class_its_share_of_what_it_has(
    labels: list[int], size: int, seed: int
) -> None:
    memory = remembered(labels)
    kept = memory.rebalance(size, rng(seed))
    classes = sorted(set(labels))
    assert len(kept) <= size
    for label, quota in zip(classes, even_quotas(size, len(classes)), strict=True):
        assert counts(kept.y)[label] == min(quota, labels.count(label))
    rows = kept.X[:, 0].astype(int).tolist()
    assert rows == sorted(set(rows))  # each at most once
    assert [labels[row] for row in rows] == kept.y.tolist()


def test_rebalancing_is_random_and_seeded() -> None:
    memory = remembered([0] * 50 + [1] * 50)
    first, again, other = (memory.rebalance(10, rng(seed)).X for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_every_instance_of_a_class_may_stay() -> None:
    memory = remembered([0] * 6 + [1] * 6)
    stayed = Counter(
        int(row) for seed in range(300) for row in memory.rebalance(4, rng(seed)).X[:, 0]
    )
    # 100 expected of each; five standard deviations are 41
    assert all(59 <= stayed[row] <= 141 for row in range(12))


def test_an_empty_memory_stays_empty() -> None:
    empty = Memory.empty(np.ones((3, 4, 4), dtype=np.uint8))
    assert (empty.X.shape, empty.X.dtype, len(empty)) == ((0, 4, 4), np.uint8, 0)
    assert len(empty.rebalance(10, rng())) == 0


def test_joining_keeps_the_type_and_shares_nothing() -> None:
    X = np.ones((3, 4, 4), dtype=np.uint8)
    joined = Memory.empty(X).combine(X, np.array([0, 1, 1]))
    X[:] = 9
    assert joined.X.dtype == np.uint8
    assert joined.X.max() == 1
    assert joined.y.tolist() == [0, 1, 1]


@given(some_labels, st.integers(0, 10), st.integers(0, 100))
def test_what_is_set_aside_is_not_trained_on(labels: list[int], per_class: int, seed: int) -> None:
    y = np.array(labels, dtype=np.int64)
    train, aside = set_aside(y, per_class, rng(seed), NOTHING)
    assert sorted([*train.tolist(), *aside.tolist()]) == list(range(len(y)))
    for label in set(labels):
        assert counts(y[aside])[label] == min(per_class, labels.count(label) // 3)


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_classes_are_trained_on_whole(n: int) -> None:
    train, aside = set_aside(np.zeros(n, dtype=np.int64), 20, rng(), NOTHING)
    assert len(train) == n
    assert aside.dtype.kind == "i"
    assert len(aside) == 0


def test_what_is_there_already_counts() -> None:
    y = np.repeat([0, 1, 2], 30)
    _, aside = set_aside(y, 8, rng(), there=np.array([0] * 8 + [1] * 5 + [9] * 3))
    assert counts(y[aside]) == {1: 3, 2: 8}


def test_setting_aside_is_random_and_seeded() -> None:
    y = np.zeros(60, dtype=np.int64)
    first, again, other = (set_aside(y, 10, rng(seed), NOTHING)[1].tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_classes_of_a_memory_get_new_positions() -> None:
    memory = remembered([0, 1, 2, 1]).reassign(np.array([1, -1, 1]))
    assert (memory.X.ravel().tolist(), memory.y.tolist()) == ([0.0, 2.0], [1, 1])


def test_labelled_instances_are_found_once_and_removed() -> None:
    memory = Memory(np.array([[5.0], [5.0], [5.0], [7.0]]), np.array([0, 1, 0, 1]))
    X, y = np.array([[5.0], [5.0000001], [5.0], [7.0], [7.0]]), np.array([0, 0, 0, 1, 0])
    assert memory.find(X, y) == [0, 2, None, 3, None]
    assert memory.without([0, 3]).y.tolist() == [1, 0]
    assert Memory.empty(memory.X).find(X, y) == [None] * 5


def test_near_duplicates_are_not_on_both_sides() -> None:
    y, group = np.repeat([0, 1], 30), np.arange(60) // 3
    train, aside = set_aside(y, 5, rng(), NOTHING, group)
    assert counts(y[aside]) == {0: 3, 1: 3}  # three groups are lost of ten
    assert len(set(group[aside])) == len(aside)
    assert not set(group[train]) & set(group[aside])
    assert len(train) == 60 - 3 * len(aside)


def test_what_was_trained_on_or_has_two_labels_is_not_held_out() -> None:
    y = np.repeat([0, 1], 12)
    group = np.arange(24)
    group[12] = group[0]
    seen = np.isin(np.arange(24), [1, 2, 3, 4, 5, 13, 14, 15, 16, 17, 18])
    for seed in range(20):
        train, aside = set_aside(y, 12, rng(seed), NOTHING, group, seen)
        assert {0, 12, *np.flatnonzero(seen).tolist()} <= set(train.tolist())
        assert counts(y[aside]) == {0: 4, 1: 4}


def test_without_near_duplicates_the_choice_is_the_same() -> None:
    y = np.repeat([0, 1, 2], 20)
    for one, other in zip(
        set_aside(y, 4, rng(), NOTHING), set_aside(y, 4, rng(), NOTHING, np.arange(60)), strict=True
    ):
        assert np.array_equal(one, other)
