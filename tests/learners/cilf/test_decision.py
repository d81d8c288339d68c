from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.learners.cilf.decision import (
    average_novelty,
    decide,
    measure_novelty,
    novelty_threshold,
    weigh_by_class,
)


def clusters(centres: list[float], n_known: int) -> Clusters:
    return Clusters(torch.tensor(centres)[:, None], torch.zeros(1, dtype=torch.long), n_known)


def normal(n: int, mean: float, seed: int) -> Tensor:
    return mean + torch.randn(n, generator=torch.Generator().manual_seed(seed))


def test_novelty_is_how_much_nearer_a_novel_centre_is() -> None:
    points = torch.tensor([[0.0], [9.0], [5.0]])
    assert measure_novelty(points, clusters([0.0, 2.0, 10.0], 2)).tolist() == [-10.0, 6.0, -2.0]


def test_without_novel_centres_novelty_is_the_distance_from_known_ones() -> None:
    assert measure_novelty(torch.tensor([[3.0], [-1.0]]), clusters([0.0, 2.0], 2)).tolist() == [
        1.0,
        1.0,
    ]


def test_novelty_is_averaged_over_the_clusterings_with_novel_centres() -> None:
    points = {k: torch.tensor([[4.0], [9.0]]) for k in range(3)}
    found = {
        0: clusters([0.0], 1),
        1: clusters([0.0, 10.0], 1),
        2: clusters([0.0, 10.0, 5.0], 1),
    }
    assert average_novelty(points, found).tolist() == [(-2 + 3) / 2, (8 + 8) / 2]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_the_share_of_fresh_known_instances_above_the_threshold_is_the_one_asked_for(
    share: float,
) -> None:
    above = [
        float(
            (normal(500, -9, 1000 + seed) > novelty_threshold(normal(100, -9, seed), share, True))
            .float()
            .mean()
        )
        for seed in range(100)
    ]
    assert sum(above) / len(above) == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize("sizes", [(90, 10), (10, 90), (100, 0)])
def test_the_share_holds_in_the_mixture_of_the_window(sizes: tuple[int, int]) -> None:
    """The second class is nearer to the novel one; as many are held out of it as of the first."""
    labels = torch.arange(2).repeat_interleave(200)
    weights = weigh_by_class(labels, torch.tensor(sizes))
    above = []
    for seed in range(50):
        held_out = torch.cat([normal(200, -30, seed), normal(200, -20, 500 + seed)])
        threshold = novelty_threshold(held_out, 0.05, False, weights)
        fresh = torch.cat([normal(10 * sizes[0], -30, 1000 + seed),
                           normal(10 * sizes[1], -20, 2000 + seed)])  # fmt: skip
        above.append(float((fresh > threshold).float().mean()))
    assert sum(above) / len(above) == pytest.approx(0.05, abs=0.01)


def test_equal_weights_are_as_good_as_none() -> None:
    held_out = normal(60, -9, 0)
    weights = torch.full((60,), 3.0)
    for share in (0.0, 0.02, 0.3, 1.0):
        expected = novelty_threshold(held_out, share, True)
        assert novelty_threshold(held_out, share, True, weights) == expected


def test_classes_that_the_window_lacks_have_no_weight() -> None:
    weights = weigh_by_class(torch.tensor([0, 1, 1, 2]), torch.tensor([6, 0, 2]))
    assert weights.tolist() == [6.0, 0.0, 0.0, 2.0]
    assert novelty_threshold(torch.tensor([-1.0, -2.0]), 0.05, True, torch.zeros(2)) == 0.0


def test_where_classes_overlap_the_nearest_centre_decides_unless_strict() -> None:
    held_out = normal(100, 0, 0)
    assert novelty_threshold(held_out, 0.05, strict=False) == 0.0
    assert float((held_out > novelty_threshold(held_out, 0.05, strict=True)).float().mean()) <= 0.05


def test_nothing_held_out_leaves_it_to_the_nearest_centre() -> None:
    assert novelty_threshold(torch.zeros(0), 0.05, strict=True) == 0.0


def test_few_held_out_instances_allow_none_above_them_or_leave_it_to_the_nearest_centre() -> None:
    few = torch.tensor([-3.0, -1.0, -2.0])
    assert novelty_threshold(few, 0.05, strict=True) == -1.0
    assert novelty_threshold(few, 0.05, strict=False) == 0.0
    assert novelty_threshold(few, 1.0, strict=False) == -3.0


def test_above_the_threshold_the_nearest_novel_centre_decides() -> None:
    points = torch.tensor([[0.0], [9.0], [5.5], [2.1]])
    found = decide(points, clusters([0.0, 2.0, 10.0, 4.0], 2), threshold=1.0)
    assert found.cluster.tolist() == [-1, 0, 1, -1]
    assert found.label.tolist() == [0, 1, 1, 1]


def test_no_novel_cluster_stays_empty_and_without_one_all_is_known() -> None:
    points = torch.tensor([[0.0], [0.1], [1.9]])
    assert 0 in decide(points, clusters([0.0, 9.0], 1), threshold=0.0).cluster
    assert decide(points, clusters([0.0, 2.0], 2), threshold=0.0).cluster.tolist() == [-1, -1, -1]
