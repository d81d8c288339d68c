"""How far apart clusters lie, and which of them are one class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.clustering.separation import (
    MIN_HALVED_SIZE,
    SeparationScale,
    merge_clusters,
    separate_halves,
    separations,
)

KNOWN = torch.tensor([[0.0, 0, 0, 0], [12.0, 0, 0, 0], [0.0, 12, 0, 0]])
NOVEL = torch.tensor([[12.0, 12, 0, 0], [0.0, 0, 12, 0]])


def around(centre: Tensor, n: int, seed: int) -> Tensor:
    noise = np.random.default_rng(seed).normal(size=(n, 4))
    return centre + torch.tensor(noise, dtype=torch.float32)


def separate(*clusters: Tensor) -> np.ndarray[Any, Any]:
    """The separations of clusters that are given one by one."""
    labels = [torch.full((len(members),), i) for i, members in enumerate(clusters)]
    return separations(torch.cat(clusters), torch.cat(labels), len(clusters))


def separation(a: Tensor, b: Tensor) -> float:
    return float(separate(a, b)[0, 1])


def project_slowly(members: Tensor, other: Tensor) -> list[float]:
    """Distance of each instance from the other mean, towards the mean of the others."""
    places = []
    for i, x in enumerate(members):
        rest = torch.cat([members[:i], members[i + 1 :]]).mean(0)
        axis = rest - other.mean(0)
        places.append(float((x - other.mean(0)) @ axis / axis.norm()))
    return places


def separate_slowly(a: Tensor, b: Tensor) -> float:
    along_a, along_b = np.array(project_slowly(a, b)), np.array(project_slowly(b, a))
    gap = along_a.mean() + along_b.mean() - float((a.mean(0) - b.mean(0)).norm())
    squares = ((along_a - along_a.mean()) ** 2).sum() + ((along_b - along_b.mean()) ** 2).sum()
    return float(gap / np.sqrt(squares / (len(a) + len(b) - 2)))


def separation_threshold(known: list[Tensor], place: float, generator: torch.Generator) -> float:
    return SeparationScale.measure(known, generator).at(place)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_separation_is_d_prime_for_many_instances() -> None:
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.normal(0, 1, size=(4000, 2)), dtype=torch.float32)
    b = torch.tensor(rng.normal((5, 0), 1, size=(4000, 2)), dtype=torch.float32)
    assert separation(a, b) == pytest.approx(5.0, abs=0.15)
    assert separation(b, a) == pytest.approx(separation(a, b), rel=1e-5)


def test_separation_is_not_fooled_by_many_dimensions() -> None:
    """Two random parts of one cloud: a line through their means separates them, seemingly."""
    z = torch.randn(24, 400, generator=seeded())
    a, b = z[:12], z[12:]
    axis = (a.mean(0) - b.mean(0)) / (a.mean(0) - b.mean(0)).norm()
    naive = float(((a @ axis).mean() - (b @ axis).mean()) / (a @ axis).std())
    assert naive > 3
    assert separation(a, b) < 1


def test_clusters_of_equal_or_of_few_instances_are_not_apart() -> None:
    """All instances at one place: the leave-one-out line may point the wrong way."""
    same = torch.ones(20, 3)
    assert separation(same[:10], same[10:]) == 0.0
    assert separation_threshold([same, same.clone()], 0.3, seeded()) == 0.0
    assert separation(same[:2], 9 + same) == 0.0


def test_separations_are_those_of_a_slow_and_direct_computation() -> None:
    clusters = [around(centre, 15 + 5 * seed, seed) for seed, centre in enumerate(KNOWN / 4)]
    found = separate(*clusters)
    assert np.allclose(found, found.T)
    assert np.diag(found).tolist() == [0.0, 0.0, 0.0]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert found[i, j] == pytest.approx(separate_slowly(clusters[i], clusters[j]), rel=1e-4)


def test_instances_far_from_the_origin_are_separated_as_near_it() -> None:
    a, b = around(KNOWN[0], 20, seed=0), around(KNOWN[1] / 4, 20, seed=1)
    assert separation(a + 1000, b + 1000) == pytest.approx(separation(a, b), rel=1e-2)


def test_halves_of_one_class_are_merged_and_classes_are_not() -> None:
    one, other = around(NOVEL[0], 40, seed=3), around(NOVEL[1], 40, seed=4)
    halves = one[:, 0] > one[:, 0].median()
    known = [around(centre, 40, seed=5 + c) for c, centre in enumerate(KNOWN)]
    distances = separate(one[halves], one[~halves], other)
    closest = separation_threshold(known, 0.15, seeded())
    assert merge_clusters(distances, [0, 1, 2], closest) == [[0, 1], [2]]
    assert merge_clusters(distances, [0, 1, 2], closest=0.0) == [[0], [1], [2]]
    assert merge_clusters(distances, [], closest=1.0) == []


def test_a_merged_cluster_is_as_far_from_others_as_its_clusters_on_average() -> None:
    distances = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]], dtype=np.float32)
    assert merge_clusters(distances, [0, 1, 2], closest=4.0) == [[0, 1], [2]]  # (3 + 6) / 2
    assert merge_clusters(distances, [0, 1, 2], closest=5.0) == [[0, 1, 2]]
    assert merge_clusters(distances, [0, 2], closest=4.0) == [[0, 2]]


@pytest.mark.parametrize(
    ("at_least", "expected"),
    [(1, [[0, 1, 2]]), (2, [[0, 1], [2]]), (3, [[0], [1], [2]]), (9, [[0], [1], [2]])],
)
def test_merging_stops_at_the_least_number_however_close_clusters_are(
    at_least: int, expected: list[list[int]]
) -> None:
    distances = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]], dtype=np.float32)
    assert merge_clusters(distances, [0, 1, 2], math.inf, at_least) == expected


def test_the_threshold_goes_from_halves_of_a_class_to_whole_classes() -> None:
    known = [around(centre, 200, seed) for seed, centre in enumerate(KNOWN)]
    steps = [separation_threshold(known, place, seeded()) for place in (0.0, 0.5, 1.0)]
    assert steps[0] == pytest.approx(2.65, abs=0.4)  # a normal density cut in the middle
    assert steps[2] == pytest.approx(12.0, abs=1.0)  # as KNOWN was made
    assert steps[1] == pytest.approx(math.sqrt(steps[0] * steps[2]))


def test_halves_of_a_class_of_two_clumps_lie_far_apart() -> None:
    round_class, clumps = around(KNOWN[0], 60, seed=0), around(KNOWN[0], 60, seed=1)
    clumps[:30, 0] += 20
    assert separate_halves(round_class, seeded()) < 4
    assert separate_halves(clumps, seeded()) == pytest.approx(20, rel=0.2)


def test_a_class_of_few_instances_says_nothing_about_halves() -> None:
    few = torch.randn(MIN_HALVED_SIZE - 1, 2, generator=seeded())
    assert separation_threshold([few], 0.15, seeded()) == 0.0
    alone = [around(KNOWN[0], 50, seed=0)]
    assert separation_threshold(alone, 0.9, seeded()) == pytest.approx(
        separation_threshold(alone, 0.0, seeded())
    )
