"""k-means with known centres and the silhouette, against scikit-learn and direct computations."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from cilf.clustering import kmeans as kmeans_module
from cilf.clustering.kmeans import Clusters, fill_empty, kmeans, refine, semi_supervised_kmeans


def blobs(*centres: tuple[float, float], n: int = 30, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(centre, 0.5, size=(n, 2)) for centre in centres]
    return torch.tensor(np.concatenate(parts), dtype=torch.float32)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_without_known_centres_it_is_kmeans() -> None:
    z = blobs((0, 0), (6, 0), (0, 6), (6, 6))
    ours = semi_supervised_kmeans(z, z[:0], 4, generator=seeded())
    reference = KMeans(4, n_init=10, random_state=0).fit(z.numpy())
    inertia = (z - ours.centres[ours.assignment]).square().sum()
    assert float(inertia) == pytest.approx(reference.inertia_, rel=1e-4)


def test_known_centres_stay_at_beta_one_and_novel_ones_find_the_rest() -> None:
    known = torch.tensor([[0.0, 0.0], [6.0, 0.0]])
    found = semi_supervised_kmeans(
        blobs((0, 0), (6, 0), (3, 9)), known, 1, generator=seeded(), beta=1.0
    )
    assert torch.equal(found.centres[:2], known)
    assert torch.allclose(found.novel[0], torch.tensor([3.0, 9.0]), atol=0.4)
    assert found.assignment.tolist() == [0] * 30 + [1] * 30 + [2] * 30


def test_known_centres_move_a_share_of_the_way_to_their_weighted_mean() -> None:
    z = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0])
    found = semi_supervised_kmeans(
        z, torch.tensor([[0.0], [11.0]]), 0, generator=seeded(), beta=0.8, weights=weights
    )
    assert found.centres[:, 0].tolist() == pytest.approx([0.2 * 0.75, 11.0])


def test_weights_decide_where_a_novel_centre_goes() -> None:
    z = torch.tensor([[0.0], [1.0], [8.0], [9.0]])
    heavy_left = torch.tensor([100.0, 100.0, 1e-6, 1e-6])
    found = semi_supervised_kmeans(z, z[:0], 1, generator=seeded(), weights=heavy_left)
    assert float(found.novel[0, 0]) == pytest.approx(0.5, abs=1e-3)


def inertia(z: torch.Tensor, found: Clusters) -> float:
    return float((z - found.centres[found.assignment]).square().sum())


def lloyd(
    z: np.ndarray, known: np.ndarray, free: np.ndarray, beta: float, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """k-means as the book has it: one instance and one centre at a time."""
    centres = np.concatenate([known, free])
    labels = np.array([((centres - point) ** 2).sum(1).argmin() for point in z])
    for _ in range(30):
        for label in range(len(centres)):
            mine = labels == label
            old, share = (known[label], beta) if label < len(known) else (centres[label], 0.0)
            mean = np.average(z[mine], axis=0, weights=weights[mine]) if mine.any() else old
            centres[label] = share * old + (1 - share) * mean
        labels = np.array([((centres - point) ** 2).sum(1).argmin() for point in z])
    return centres, labels


@pytest.mark.parametrize("beta", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("n_known", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_settles_where_the_plain_algorithm_does(
    beta: float, n_known: int, weighted: bool
) -> None:
    rng = np.random.default_rng(7)
    z, known, free = (rng.normal(size=(n, 4)) for n in (200, n_known, 3))
    weights = rng.uniform(0.1, 2.0, size=200) if weighted else np.ones(200)
    found = refine(
        *map(torch.from_numpy, (z, known, free)),
        beta=beta, weights=torch.from_numpy(weights) if weighted else None,
    )  # fmt: skip
    centres, labels = lloyd(z, known, free, beta, weights)
    assert found.assignment.tolist() == labels.tolist()
    np.testing.assert_allclose(found.centres, centres, atol=1e-9)


@pytest.mark.parametrize("beta", [0.8, 1.0])
def test_the_best_start_wins_however_many_run_together(
    beta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, known = torch.randn(300, 6, generator=seeded()), torch.randn(2, 6, generator=seeded(1))
    together = semi_supervised_kmeans(z, known, 4, generator=seeded(), beta=beta)
    same_generator = seeded()
    alone = [
        semi_supervised_kmeans(z, known, 4, generator=same_generator, beta=beta, n_starts=1)
        for _ in range(10)
    ]
    assert inertia(z, together) == pytest.approx(min(inertia(z, found) for found in alone))
    monkeypatch.setattr(kmeans_module, "MOST_DISTANCES", 3 * 300 * 6)
    in_groups = semi_supervised_kmeans(z, known, 4, generator=seeded(), beta=beta)
    assert torch.equal(in_groups.assignment, together.assignment)


def test_equal_instances_do_not_break_the_start() -> None:
    found = semi_supervised_kmeans(torch.ones(5, 3), torch.ones(1, 3), 2, generator=seeded())
    assert torch.isfinite(found.centres).all()


def test_no_cluster_stays_empty() -> None:
    distances = torch.tensor([[0.0, 5.0, 9.0], [1.0, 5.0, 9.0], [9.0, 0.0, 9.0]])
    filled = fill_empty(torch.tensor([0, 0, 1]), distances)
    assert sorted(filled.unique().tolist()) == [0, 1, 2]


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_no_cluster_is_empty_where_instances_coincide(n_clusters: int) -> None:
    assignment = kmeans(torch.ones(5, 3), n_clusters, seeded())
    assert assignment.unique().tolist() == list(range(n_clusters))


def test_an_empty_cluster_takes_the_farthest_instance() -> None:
    distances = torch.tensor([[1.0, 9.0, 9.0], [3.0, 9.0, 9.0], [2.0, 5.0, 9.0]])
    assert fill_empty(torch.tensor([0, 0, 1]), distances).tolist() == [0, 2, 1]


def test_only_known_classes_may_be_emptied() -> None:
    distances = torch.tensor([[1.0, 9.0, 9.0], [3.0, 9.0, 9.0]])
    filled = fill_empty(torch.tensor([0, 1]), distances, n_known=1)
    assert filled.tolist() == [2, 1]
    assert fill_empty(torch.tensor([1, 2]), distances, n_known=1).tolist() == [1, 2]


def test_kmeans_finds_separate_lines() -> None:
    assignment = kmeans(blobs((0, 0), (10, 0), (20, 0), n=10), 3, seeded()).reshape(3, 10)
    assert all(len(row.unique()) == 1 for row in assignment)
    assert len(assignment[:, 0].unique()) == 3
