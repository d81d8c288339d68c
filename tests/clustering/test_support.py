"""How strongly a cluster speaks for a novel class."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import betabinom
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import Labelled, PValues, measure_p_values
from cilf.clustering.support import (
    MIN_CLUSTER_SIZE,
    MOST_COVERAGE,
    P_WEIGHT,
    TINY,
    KnownShares,
    measure_support,
)

from .blobs import KNOWN, NOVEL, around, label


def surprise(n_inside: int, n_labelled: int, n_members: int, n_window: int) -> float:
    """The surprise of one known class at a cluster."""
    inside = torch.tensor([[n_labelled - n_inside], [n_inside]])
    shares = KnownShares(inside, torch.tensor([n_labelled]), torch.tensor([n_window]))
    return shares.surprise(1, torch.zeros(n_members, dtype=torch.int64))


@pytest.mark.parametrize(
    ("n_inside", "n_labelled", "n_members", "n_window"),
    [(0, 20, 5, 60), (3, 20, 10, 50), (10, 80, 9, 40), (0, 0, 7, 10), (1, 100, 8, 100)],
)
def test_the_surprise_at_one_class_is_that_of_a_beta_binomial_distribution(
    n_inside: int, n_labelled: int, n_members: int, n_window: int
) -> None:
    found = surprise(n_inside, n_labelled, n_members, n_window)
    a, b = n_inside + 1, n_labelled - n_inside + 1
    exact = sum(betabinom.pmf(m, n_window, a, b) for m in range(n_members, n_window + 1))
    assert found == pytest.approx(-math.log10(exact), abs=1e-6)
    rng = np.random.default_rng(0)
    sizes = rng.binomial(n_window, rng.beta(a, b, size=200_000))
    assert 10**-found == pytest.approx(float((sizes >= n_members).mean()), abs=0.005)


def test_the_surprise_at_two_classes_is_about_that_of_their_mixture() -> None:
    inside = torch.tensor([[18, 75], [2, 5]])
    total, window = torch.tensor([20, 80]), torch.tensor([60, 20])
    nearest = torch.tensor([0] * 10 + [1] * 4)
    found = KnownShares(inside, total, window).surprise(1, nearest)
    rng = np.random.default_rng(0)
    sizes = sum(
        rng.binomial(n, rng.beta(i + 1, t - i + 1, size=200_000))
        for i, t, n in ((2, 20, 60), (5, 80, 20))
    )
    assert 10**-found == pytest.approx(float((sizes >= 14).mean()), rel=0.25)


def test_classes_that_no_member_is_near_to_explain_nothing() -> None:
    inside, total = torch.tensor([[20, 5], [0, 15]]), torch.tensor([20, 20])
    shares = KnownShares(inside, total, torch.tensor([30, 30]))
    first, second = (shares.surprise(1, torch.full((10,), c)) for c in (0, 1))
    assert first > 2 > 0.1 > second


def test_the_more_labelled_instances_lie_elsewhere_the_larger_the_surprise() -> None:
    found = [surprise(0, n, 10, 50) for n in (0, 5, 20, 80, 300)]
    assert found == sorted(found)
    assert found[0] < 0.2
    assert found[-1] > 5


def test_the_more_labelled_instances_lie_in_the_cluster_the_smaller_the_surprise() -> None:
    found = [surprise(n, 80, 20, 50) for n in (0, 2, 10, 40)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.1


def test_labelled_instances_make_an_expected_share_certain_and_so_a_larger_one_surprising() -> None:
    """A quarter of the labelled instances, and half of those of the window, lie there."""
    found = [surprise(n // 4, n, 50, 100) for n in (4, 20, 80, 400)]
    assert found == sorted(found)
    as_expected = [surprise(n // 4, n, 25, 100) for n in (4, 20, 80, 400)]
    assert max(as_expected) < 0.5


def test_the_surprise_is_bounded() -> None:
    assert surprise(0, 10**6, 500, 1000) == pytest.approx(-math.log10(TINY))


def test_labelled_instances_and_the_window_are_counted_by_class() -> None:
    clusters, labels = torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 0, 1, 1, 1, 0])
    shares = KnownShares.count(clusters, labels, torch.tensor([1, 1, 0]), n_clusters=3, n_known=2)
    assert shares.inside.tolist() == [[2, 0], [0, 1], [1, 2]]
    assert shares.total.tolist() == [3, 3]
    assert shares.window.tolist() == [1, 2]


def support(window: Tensor, centre: Tensor, n_labelled: int = 60) -> float:
    """The support of one novel centre in a window beside labelled instances."""
    memory, held_out = label(KNOWN, n_labelled, 1000), label(KNOWN, 20, 2000)
    centres = torch.cat([KNOWN, centre[None]])
    clusters = Clusters(centres, torch.cdist(window, centres).argmin(1), n_known=3)
    labelled = Labelled(
        torch.cat([memory.points, held_out.points]), torch.cat([memory.labels, held_out.labels])
    )
    known = measure_p_values(window, KNOWN, memory, held_out)
    return measure_support(clusters, known, clusters.assign(labelled.points), labelled.labels)[0]


PART = KNOWN[0] + torch.tensor([-1.0, 0, 0, 0, 0, 0, 0, 0])  # of the first class


@pytest.mark.parametrize("n_first", [10, 30, 100, 1000])
@pytest.mark.parametrize("n_others", [0, 5, 500])
def test_a_part_of_a_known_class_has_little_support_whatever_the_window(
    n_first: int, n_others: int
) -> None:
    window = around(KNOWN, [n_first, n_others, n_others], seed=n_first + n_others)
    assert support(window, PART) < 5


@pytest.mark.parametrize("n_known", [0, 5, 30, 100])
def test_a_novel_class_has_much_support_in_small_and_large_windows(n_known: int) -> None:
    window = torch.cat([around(KNOWN, n_known, seed=0), around(NOVEL[:1], 20, seed=1)])
    assert support(window, NOVEL[0]) > 7


def test_a_share_smaller_than_labelled_instances_can_measure_is_not_surprising() -> None:
    """20 of 3020 instances, where 1 of 240 labelled ones might lie."""
    window = torch.cat([around(KNOWN, 1000, seed=0), around(NOVEL[:1], 20, seed=1)])
    assert support(window, NOVEL[0]) < 7 < support(window[-320:], NOVEL[0])
    assert support(window, NOVEL[0], n_labelled=600) > 7


def test_novel_instances_have_more_support_the_more_are_labelled() -> None:
    window = torch.cat([around(KNOWN, 20, seed=0), around(NOVEL[:1], 4, seed=1)])
    found = [support(window, NOVEL[0], n) for n in (5, 20, 200)]
    assert found == sorted(found)


def measure(n_members: int, p: list[float]) -> float:
    """The support of a cluster beside one known class, of which no labelled instance is there."""
    assignment = torch.tensor([1] * n_members + [0] * (20 - n_members))
    clusters = Clusters(torch.tensor([[0.0], [9.0]]), assignment, n_known=1)
    known = PValues(torch.tensor(p), torch.zeros(20, dtype=torch.int64))
    there = torch.zeros(50, dtype=torch.int64)
    return measure_support(clusters, known, there, there)[0]


@pytest.mark.parametrize("n_members", range(MIN_CLUSTER_SIZE))
def test_clusters_that_are_smaller_than_a_class_have_none(n_members: int) -> None:
    assert measure(n_members, [1e-3] * 20) == 0.0
    assert measure(MIN_CLUSTER_SIZE, [1e-3] * 20) > 0.0


def test_support_is_the_surprise_and_the_mean_digits_of_p_values() -> None:
    found = measure(4, [0.1, 0.1, 0.01, 0.01] + [1.0] * 16)
    assert found == pytest.approx(surprise(0, 50, 4, 20) + P_WEIGHT * 1.5, abs=1e-5)
    assert measure(20, [1.0] * 20) == pytest.approx(min(surprise(0, 50, 20, 20), MOST_COVERAGE))


def test_without_novel_clusters_there_is_no_support() -> None:
    clusters = Clusters(torch.tensor([[0.0]]), torch.zeros(5, dtype=torch.int64), n_known=1)
    zeros = torch.zeros(5, dtype=torch.int64)
    assert measure_support(clusters, PValues(torch.ones(5), zeros), zeros, zeros) == []
