from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cilf.core import Detection, Window
from cilf.core.types import Ints
from cilf.stream import Oracle
from cilf.stream.oracle import choose_queries

steady = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def detection(cluster: list[int]) -> Detection:
    n = len(cluster)
    found = np.array(cluster, dtype=np.int64)
    return Detection(np.zeros(n, np.float32), np.zeros(n, int), found, 2, {}, np.zeros((n, 1)))


def rows(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


MANY = detection([-1, 0, 1] * 40)


def test_the_oracle_answers_what_is_asked_and_counts() -> None:
    y = np.array(["a", "b", "c", "b"])
    oracle = Oracle(Window(1, np.zeros((4, 1)), y, ("c",), ("a", "b"), np.arange(4)))
    assert oracle.answer(rows(2, 0)).tolist() == ["c", "a"]
    assert oracle.answer(rows()).tolist() == []
    assert oracle.answer(rows(1)).tolist() == ["b"]
    assert oracle.n_answered == 3


@steady
@given(st.lists(st.integers(-1, 2), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 1000))
def test_a_share_of_those_believed_novel_is_asked_for(
    cluster: list[int], share: float, seed: int
) -> None:
    asked = choose_queries(detection(cluster), share, seed=seed, window=1)
    novel = [row for row, found in enumerate(cluster) if found >= 0]
    assert set(asked.tolist()) <= set(novel)
    assert asked.tolist() == sorted(set(asked.tolist()))
    assert abs(len(asked) - share * len(novel)) < 1


@pytest.mark.parametrize("n", range(1, 60))
def test_shares_that_come_out_even_are_not_rounded_up(n: int) -> None:
    found = detection([0] * 10 * n)
    for tenths in range(11):  # 0.1 * 3 is a little more than 0.3 in floating point
        assert len(choose_queries(found, tenths / 10, seed=0, window=1)) == tenths * n


def test_all_and_none() -> None:
    assert (
        choose_queries(MANY, 1.0, seed=0, window=1).tolist()
        == np.flatnonzero(MANY.is_novel).tolist()
    )
    assert len(choose_queries(MANY, 0.0, seed=0, window=1)) == 0
    assert len(choose_queries(detection([-1, -1]), 1.0, seed=0, window=1)) == 0


@pytest.mark.parametrize("share", [0.001, 0.01, 0.3])
def test_at_least_one_is_asked_for(share: float) -> None:
    assert len(choose_queries(detection([-1, 0]), share, seed=0, window=1)) == 1


def test_seed_and_window_decide_who_is_asked_for() -> None:
    def asked(seed: int, window: int) -> tuple[int, ...]:
        return tuple(choose_queries(MANY, 0.5, seed=seed, window=window).tolist())

    choices = {asked(seed, window) for seed in range(5) for window in range(1, 5)}
    assert len(choices) == 20
    assert asked(3, 2) == asked(3, 2)


def test_every_instance_has_the_same_chance() -> None:
    counts = np.zeros(len(MANY))
    n_rounds = 600
    for seed in range(n_rounds):
        counts[choose_queries(MANY, 0.25, seed=seed, window=1)] += 1
    novel = counts[MANY.is_novel]
    deviation = math.sqrt(n_rounds * 0.25 * 0.75)
    assert np.abs(novel - n_rounds * 0.25).max() < 4.5 * deviation
    assert counts[~MANY.is_novel].sum() == 0
