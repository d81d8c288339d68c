from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.clustering.novel_clusters import (
    cluster_novel,
    cluster_window,
    novel_shares,
    take_at_least,
)
from cilf.clustering.validity_curve import largest


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def blobs(*centres: float, n: int = 10) -> torch.Tensor:
    spread = torch.linspace(-0.5, 0.5, n)
    return torch.cat([torch.stack([centre + spread, spread.flip(0)], 1) for centre in centres])


def test_only_novel_instances_are_clustered(generator: torch.Generator) -> None:
    is_novel = np.repeat([False, True, True], 10)
    cluster, curve = cluster_novel(
        blobs(0, 10, 20), is_novel, None, k_max=4, least_silhouette=0.3, generator=generator
    )
    assert (cluster >= 0).tolist() == is_novel.tolist()
    assert cluster.max() == 1
    assert set(curve) == {1, 2, 3, 4}


def test_nothing_novel_is_nothing_found(generator: torch.Generator) -> None:
    none = np.zeros(10, dtype=bool)
    for n_novel in (None, 0):
        cluster, curve = cluster_novel(
            blobs(0), none, n_novel, k_max=4, least_silhouette=0.3, generator=generator
        )
        assert (cluster == -1).all()
        assert curve == {}


def test_two_novel_instances_are_not_split_by_estimate(generator: torch.Generator) -> None:
    is_novel = np.array([True, True] + [False] * 8)
    cluster, _ = cluster_novel(
        blobs(0), is_novel, None, k_max=4, least_silhouette=0.3, generator=generator
    )
    assert cluster.tolist() == [0, 0] + [-1] * 8


def test_all_together_takes_the_mostly_is_novel(generator: torch.Generator) -> None:
    is_novel = np.repeat([False, True, True], 10)
    is_novel[[0, 15]] = [True, False]  # one stray one on each side
    cluster, curve = cluster_window(
        blobs(0, 10, 20), is_novel, 1, None, k_max=4, generator=generator
    )
    assert (cluster[:10] == -1).all()
    assert sorted({*cluster[10:20].tolist(), *cluster[20:].tolist()}) == [0, 1]
    assert largest(curve) == 2


def test_all_together_with_fewer_instances_than_known_classes(generator: torch.Generator) -> None:
    is_novel = np.array([True, False])
    cluster, _ = cluster_window(blobs(0, n=2), is_novel, 5, None, k_max=4, generator=generator)
    assert cluster.tolist() == [0, -1]


def test_novel_instances_are_kept() -> None:
    is_novel, novelty = np.array([True, False, False]), np.array([0.2, 0.1, 0.9])
    assert take_at_least(1, is_novel, novelty).tolist() == [True, False, False]
    assert take_at_least(2, is_novel, novelty).tolist() == [True, False, True]


def test_novel_shares_counts_members() -> None:
    shares = novel_shares(np.array([1, 1, 0, 1]), np.array([True, False, False, True]))
    assert shares.tolist() == pytest.approx([0, 2 / 3])
