"""Silhouette: equal to scikit-learn's, in blocks."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

from cilf.clustering import silhouette as silhouette_module
from cilf.clustering.silhouette import silhouette


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_clusters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Loose or tight clusters of any size in 1 to 70 dimensions, one of a single instance."""
    rng = np.random.default_rng(seed)
    n, d, n_clusters = (int(rng.integers(*range_)) for range_ in ((40, 400), (1, 70), (2, 30)))
    labels = rng.integers(0, n_clusters, size=n)
    labels[:4] = 0, 0, 1, 99
    centres = rng.normal(size=(n_clusters, d)) * 10 ** rng.uniform(-1, 4)
    z = centres[labels % n_clusters] + rng.normal(size=(n, d))
    return z.astype(np.float32), labels


def spoilt(z: np.ndarray, how: str) -> np.ndarray:
    """The instances, somewhere else."""
    far, outlier = z + np.float32(1e4), z.copy()
    outlier[0] = 1e6
    return {
        "as it is": z,
        "far": far,
        "tiny": z * np.float32(1e-18),
        "huge": z * np.float32(1e14),
        "repeated": z[np.arange(len(z)) % 30],
        "outlier": outlier,
    }[how]


@pytest.mark.parametrize("how", ["as it is", "far", "tiny", "huge", "repeated", "outlier"])
@pytest.mark.parametrize("seed", range(10))
def test_silhouette_equals_scikit_learns(seed: int, how: str) -> None:
    z, labels = random_clusters(seed)
    z = spoilt(z, how)
    ours = silhouette(torch.from_numpy(z), torch.from_numpy(labels))
    assert ours == pytest.approx(silhouette_score(z, labels), abs=1e-5)


@pytest.mark.parametrize("height", [1, 10, 1000])
def test_silhouette_does_not_depend_on_the_size_of_its_blocks(
    height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, labels = random_clusters(3)
    monkeypatch.setattr(silhouette_module, "BLOCK", 1)
    monkeypatch.setattr(silhouette_module, "HEIGHT", height)
    ours = silhouette(torch.from_numpy(z), torch.from_numpy(labels))
    assert ours == pytest.approx(silhouette_score(z, labels), abs=1e-6)


def test_equal_instances_far_away_have_no_distance() -> None:
    z = (torch.randn(40, 8, generator=make_generator()) + 1e5).repeat(3, 1)
    labels = torch.arange(120) % 40
    assert silhouette(z, labels) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_silhouette_is_undefined_for_one_cluster_and_for_all_singletons(labels: list[int]) -> None:
    assert math.isnan(
        silhouette(torch.randn(3, 2, generator=make_generator()), torch.tensor(labels))
    )
