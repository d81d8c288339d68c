"""k-means with known centres and the silhouette, against scikit-learn and direct computations."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from cilf.learners.clustering import fill_empty, semi_supervised_kmeans, silhouette


def blobs(*centres: tuple[float, float], n: int = 30, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(centre, 0.5, size=(n, 2)) for centre in centres]
    return torch.tensor(np.concatenate(parts), dtype=torch.float32)


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_without_known_centres_it_is_kmeans() -> None:
    z = blobs((0, 0), (6, 0), (0, 6), (6, 6))
    ours = semi_supervised_kmeans(z, z[:0], 4, generator=draws())
    reference = KMeans(4, n_init=10, random_state=0).fit(z.numpy())
    inertia = (z - ours.centres[ours.assignment]).square().sum()
    assert float(inertia) == pytest.approx(reference.inertia_, rel=1e-4)


def test_known_centres_stay_at_beta_one_and_free_ones_find_the_rest() -> None:
    known = torch.tensor([[0.0, 0.0], [6.0, 0.0]])
    found = semi_supervised_kmeans(
        blobs((0, 0), (6, 0), (3, 9)), known, 1, generator=draws(), beta=1.0
    )
    assert torch.equal(found.centres[:2], known)
    assert torch.allclose(found.free[0], torch.tensor([3.0, 9.0]), atol=0.4)
    assert found.assignment.tolist() == [0] * 30 + [1] * 30 + [2] * 30


def test_known_centres_move_a_share_of_the_way_to_their_weighted_mean() -> None:
    z = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0])
    found = semi_supervised_kmeans(
        z, torch.tensor([[0.0], [11.0]]), 0, generator=draws(), beta=0.8, weights=weights
    )
    assert found.centres[:, 0].tolist() == pytest.approx([0.2 * 0.75, 11.0])


def test_weights_decide_where_a_free_centre_goes() -> None:
    z = torch.tensor([[0.0], [1.0], [8.0], [9.0]])
    heavy_left = torch.tensor([100.0, 100.0, 1e-6, 1e-6])
    found = semi_supervised_kmeans(z, z[:0], 1, generator=draws(), weights=heavy_left)
    assert float(found.free[0, 0]) == pytest.approx(0.5, abs=1e-3)


def test_equal_instances_do_not_break_the_start() -> None:
    found = semi_supervised_kmeans(torch.ones(5, 3), torch.ones(1, 3), 2, generator=draws())
    assert torch.isfinite(found.centres).all()


def test_no_cluster_stays_empty() -> None:
    distances = torch.tensor([[0.0, 5.0, 9.0], [1.0, 5.0, 9.0], [9.0, 0.0, 9.0]])
    filled = fill_empty(torch.tensor([0, 0, 1]), distances)
    assert sorted(filled.unique().tolist()) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_silhouette_equals_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(1500, 5)).astype(np.float32)
    labels = rng.integers(0, 4, size=1500)
    labels[0] = 9  # a cluster of one
    ours = silhouette(torch.from_numpy(z), torch.from_numpy(labels))
    assert ours == pytest.approx(silhouette_score(z, labels), abs=1e-5)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_silhouette_is_undefined_for_one_cluster_and_for_all_singletons(labels: list[int]) -> None:
    assert math.isnan(silhouette(torch.randn(3, 2, generator=draws()), torch.tensor(labels)))
