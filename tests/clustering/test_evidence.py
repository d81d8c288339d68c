"""What counting rules get."""

import pytest
import torch

from cilf.clustering.evidence import counts_to_try, measure_validity
from cilf.clustering.kmeans import Clusters
from cilf.clustering.silhouette import silhouette


@pytest.mark.parametrize(("n_instances", "most"), [(0, 1), (15, 1), (16, 2), (1000, 8)])
def test_classes_that_would_be_tiny_are_not_tried(n_instances: int, most: int) -> None:
    assert list(counts_to_try(8, n_instances)) == list(range(most + 1))


@pytest.mark.parametrize(
    ("n_instances", "most"), [(40, 3), (500, 8), (1024, 8), (1600, 10), (3000, 14), (10**6, 32)]
)
def test_without_k_max_the_window_decides_how_many_are_tried(n_instances: int, most: int) -> None:
    assert counts_to_try(None, n_instances) == range(most + 1)


def test_validity_is_measured_on_every_so_manieth_instance() -> None:
    z = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    clusters = Clusters(z[:2], torch.arange(30) // 15, n_known=1)
    assert measure_validity({1: z}, {1: clusters}) == {1: silhouette(z, clusters.assignment)}
    every_third = silhouette(z[::3], clusters.assignment[::3])
    assert measure_validity({1: z}, {1: clusters}, step=3) == {1: every_third}
