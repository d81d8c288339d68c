from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.clustering.class_count import largest
from cilf.clustering.novel_clusters import (
    at_least,
    fill_empty,
    kmeans,
    marked_shares,
    split_all,
    split_marked,
)


@pytest.fixture
def draws() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def groups(*centres: float, n: int = 10) -> torch.Tensor:
    spread = torch.linspace(-0.5, 0.5, n)
    return torch.cat([torch.stack([centre + spread, spread.flip(0)], 1) for centre in centres])


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_no_cluster_is_empty_where_instances_coincide(
    n_clusters: int, draws: torch.Generator
) -> None:
    assignment = kmeans(torch.ones(5, 3), n_clusters, draws)
    assert assignment.unique().tolist() == list(range(n_clusters))


def test_an_empty_cluster_takes_the_farthest_instance() -> None:
    distances = torch.tensor([[1.0, 9.0, 9.0], [3.0, 9.0, 9.0], [2.0, 5.0, 9.0]])
    assert fill_empty(torch.tensor([0, 0, 1]), distances).tolist() == [0, 2, 1]


def test_only_known_classes_may_be_emptied() -> None:
    distances = torch.tensor([[1.0, 9.0, 9.0], [3.0, 9.0, 9.0]])
    filled = fill_empty(torch.tensor([0, 1]), distances, n_known=1)
    assert filled.tolist() == [2, 1]
    assert fill_empty(torch.tensor([1, 2]), distances, n_known=1).tolist() == [1, 2]


def test_kmeans_finds_separate_groups(draws: torch.Generator) -> None:
    assignment = kmeans(groups(0, 10, 20), 3, draws).reshape(3, 10)
    assert all(len(row.unique()) == 1 for row in assignment)
    assert len(assignment[:, 0].unique()) == 3


def test_only_marked_instances_are_split(draws: torch.Generator) -> None:
    marked = np.repeat([False, True, True], 10)
    cluster, curve = split_marked(
        groups(0, 10, 20), marked, None, k_max=4, least_silhouette=0.3, generator=draws
    )
    assert (cluster >= 0).tolist() == marked.tolist()
    assert cluster.max() == 1
    assert set(curve) == {1, 2, 3, 4}


def test_nothing_marked_is_nothing_found(draws: torch.Generator) -> None:
    none = np.zeros(10, dtype=bool)
    for n_novel in (None, 0):
        cluster, curve = split_marked(
            groups(0), none, n_novel, k_max=4, least_silhouette=0.3, generator=draws
        )
        assert (cluster == -1).all()
        assert curve == {}


def test_two_marked_instances_are_not_split_by_estimate(draws: torch.Generator) -> None:
    marked = np.array([True, True] + [False] * 8)
    cluster, _ = split_marked(
        groups(0), marked, None, k_max=4, least_silhouette=0.3, generator=draws
    )
    assert cluster.tolist() == [0, 0] + [-1] * 8


def test_all_together_takes_the_mostly_marked(draws: torch.Generator) -> None:
    marked = np.repeat([False, True, True], 10)
    marked[[0, 15]] = [True, False]  # one stray mark on each side
    cluster, curve = split_all(groups(0, 10, 20), marked, 1, None, k_max=4, generator=draws)
    assert (cluster[:10] == -1).all()
    assert sorted({*cluster[10:20].tolist(), *cluster[20:].tolist()}) == [0, 1]
    assert largest(curve) == 2


def test_all_together_with_fewer_instances_than_known_classes(draws: torch.Generator) -> None:
    marked = np.array([True, False])
    cluster, _ = split_all(groups(0, n=2), marked, 5, None, k_max=4, generator=draws)
    assert cluster.tolist() == [0, -1]


def test_at_least_keeps_what_is_marked() -> None:
    marked, novelty = np.array([True, False, False]), np.array([0.2, 0.1, 0.9])
    assert at_least(1, marked, novelty).tolist() == [True, False, False]
    assert at_least(2, marked, novelty).tolist() == [True, False, True]


def test_marked_shares_counts_members() -> None:
    shares = marked_shares(np.array([1, 1, 0, 1]), np.array([True, False, False, True]))
    assert shares.tolist() == pytest.approx([0, 2 / 3])
