from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cilf.core import Detection
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.query import choose_queries
from cilf.query.budget import Query
from cilf.query.strategies import STRATEGIES

steady = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def detection(cluster: list[int], embedding: Array | None = None) -> Detection:
    n = len(cluster)
    found = np.array(cluster, dtype=np.int64)
    places = np.zeros((n, 1)) if embedding is None else np.asarray(embedding, dtype=np.float32)
    return Detection(np.zeros(n, np.float32), np.zeros(n, int), found, 2, {}, places)


def choose(found: Detection, query: Query, strategy: str = "random", seed: int = 0) -> list[int]:
    return choose_queries(found, query, strategy=strategy, seed=seed, window=1).tolist()


MANY = detection([-1, 0, 1] * 40)


@steady
@given(st.lists(st.integers(-1, 2), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 1000))
def test_a_share_of_those_believed_novel_is_asked_for(
    cluster: list[int], share: float, seed: int
) -> None:
    chosen = choose_queries(detection(cluster), share, seed=seed, window=1)
    novel = [row for row, found in enumerate(cluster) if found >= 0]
    assert set(chosen.tolist()) <= set(novel)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert abs(len(chosen) - share * len(novel)) < 1


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
    def drawn(seed: int, window: int) -> tuple[int, ...]:
        return tuple(choose_queries(MANY, 0.5, seed=seed, window=window).tolist())

    choices = {drawn(seed, window) for seed in range(5) for window in range(1, 5)}
    assert len(choices) == 20
    assert drawn(3, 2) == drawn(3, 2)


def test_every_instance_has_the_same_chance() -> None:
    counts = np.zeros(len(MANY))
    n_rounds = 600
    for seed in range(n_rounds):
        counts[choose_queries(MANY, 0.25, seed=seed, window=1)] += 1
    novel = counts[MANY.is_novel]
    deviation = math.sqrt(n_rounds * 0.25 * 0.75)
    assert np.abs(novel - n_rounds * 0.25).max() < 4.5 * deviation
    assert counts[~MANY.is_novel].sum() == 0


# ----------------------------------------------------------------- budgets and strategies


@steady
@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=40),
    st.integers(0, 6),
    st.sampled_from(list(STRATEGIES)),
    st.integers(0, 1000),
)
def test_a_budget_is_spent_on_every_cluster(
    cluster: list[int], budget: int, strategy: str, seed: int
) -> None:
    places = np.random.default_rng(seed).normal(size=(len(cluster), 2))
    found = detection(cluster, places)
    chosen = choose(found, budget, strategy, seed)
    assert chosen == sorted(set(chosen))
    assert chosen == choose(found, budget, strategy, seed)
    spent = {c: sum(cluster[row] == c for row in chosen) for c in range(-1, 4)}
    assert spent == {-1: 0} | {c: min(budget, cluster.count(c)) for c in range(4)}


@steady
@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=40),
    st.floats(0.001, 1),
    st.sampled_from([name for name in STRATEGIES if name != "random"]),
)
def test_other_strategies_take_their_share_of_each_cluster(
    cluster: list[int], share: float, strategy: str
) -> None:
    found = detection(cluster, np.random.default_rng(0).normal(size=(len(cluster), 2)))
    chosen = choose(found, share, strategy)
    for c in range(4):
        n = cluster.count(c)
        assert sum(cluster[row] == c for row in chosen) == math.ceil(share * n - 1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_is_one_and_one_point_nought_is_all(strategy: str) -> None:
    assert len(choose(MANY, 1, strategy)) == 2
    assert choose(MANY, 1.0, strategy) == np.flatnonzero(MANY.is_novel).tolist()
    for none in (0, 0.0, "self"):
        assert choose(MANY, none, strategy) == []
    assert choose(detection([-1, -1]), 3, strategy) == []


def test_the_first_representative_is_the_nearest_to_the_middle() -> None:
    for seed in range(20):
        places = np.random.default_rng(seed).normal(size=(60, 3)).astype(np.float32)
        found = detection([0, 1] * 30, places)
        for cluster in (0, 1):
            rows = np.flatnonzero(found.cluster == cluster)
            distance = np.linalg.norm(places[rows] - places[rows].mean(axis=0), axis=1)
            assert rows[distance.argmin()] in choose(found, 1, "representative")


def test_representatives_are_spread_over_their_cluster() -> None:
    rng = np.random.default_rng(0)
    middles = np.array([[0, 0], [6, 0], [0, 6], [6, 6]])
    places = (middles[:, None] + rng.normal(0, 0.3, (4, 25, 2))).reshape(100, 2)
    chosen = choose(detection([0] * 100, places), 4, "representative")
    assert sorted(row // 25 for row in chosen) == [0, 1, 2, 3]


def test_representatives_are_nearer_to_the_middle_than_chance_would_have_it() -> None:
    places = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    found = detection([0] * 200, places)
    distance = np.linalg.norm(places - places.mean(axis=0), axis=1)
    by_chance = np.mean([distance[choose(found, 5, seed=seed)].mean() for seed in range(50)])
    assert distance[choose(found, 5, "representative")].mean() < by_chance


def test_the_uncertain_lie_between_two_classes() -> None:
    places = np.array([[0.0], [1.0], [2.0], [4.0], [5.0], [6.0], [-9.0], [-10.0]])
    found = detection([0, 0, 0, 1, 1, 1, -1, -1], places)
    assert choose(found, 1, "uncertain") == [2, 3]
    alone = detection([0, 0, 0, -1], np.array([[0.0], [1.0], [2.0], [-4.0]]))
    assert choose(alone, 1, "uncertain") == [0]  # the nearest to what is known


def test_without_another_class_those_far_from_their_own_are_uncertain() -> None:
    assert choose(detection([0] * 4, np.array([[0.0], [1.0], [1.2], [5.0]])), 1, "uncertain") == [3]


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_mixed_is_half_representative_half_uncertain(budget: int) -> None:
    rng = np.random.default_rng(2)
    found = detection([0, 1] * 20, rng.normal(size=(40, 2)))
    chosen = set(choose(found, budget, "mixed"))
    typical = set(choose(found, (budget + 1) // 2, "representative"))
    assert typical <= chosen
    doubtful = [row for row in choose(found, 20, "uncertain") if row not in typical]
    assert len(chosen - typical) == 2 * (budget // 2)
    assert chosen - typical <= set(choose(found, budget, "uncertain")) | set(doubtful)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equal_instances_are_no_trouble(strategy: str) -> None:
    assert len(choose(detection([0] * 9 + [-1]), 4, strategy)) == 4


@pytest.mark.parametrize("query", [True, False, -1, 1.5, -0.1, math.nan, math.inf, "all", None, []])
def test_what_is_no_query_is_refused(query: Any) -> None:
    with pytest.raises(BadConfig, match=r"^query is .*give a share from 0\.0 to 1\.0") as caught:
        choose(MANY, query)
    assert "\n" not in str(caught.value)


def test_numpy_s_numbers_are_numbers() -> None:
    assert len(choose(MANY, np.int64(1))) == 2
    assert len(choose(MANY, np.float32(1))) == 80
