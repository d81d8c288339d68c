"""The p-value of an instance alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.clustering.p_values import (
    FULL_SCALE_SIZE,
    N_NEIGHBOURS,
    Labelled,
    _scales,
    distances_to_classes,
    measure_p_values,
    rank,
    rank_alone,
)

from .blobs import nothing

CENTRES = torch.tensor([[0.0, 0, 0], [30.0, 0, 0], [0.0, 40, 0]])
WIDTHS = torch.tensor([0.3, 1.0, 4.0])


def draw(n: int, seed: int) -> Labelled:
    """Equally many instances of classes of unequal width."""
    labels = torch.arange(3).repeat_interleave(n)
    noise = torch.randn(3 * n, 3, generator=torch.Generator().manual_seed(seed))
    return Labelled(CENTRES[labels] + WIDTHS[labels, None] * noise, labels)


def measure(points: Tensor, memory: Labelled, held_out: Labelled) -> Tensor:
    return measure_p_values(points, CENTRES, memory, held_out).p


def measure_slowly(point: Tensor, members: Tensor) -> float:
    """Distance to the mean of the nearest members."""
    distances = [math.dist(point.tolist(), member.tolist()) for member in members]
    nearest = [members[i].numpy() for i in np.argsort(distances)[:N_NEIGHBOURS]]
    return math.dist(point.tolist(), np.mean(nearest, axis=0).tolist())


@pytest.mark.parametrize("has_held_out", [True, False])
def test_p_values_of_fresh_known_instances_are_uniform(has_held_out: bool) -> None:
    """Of each of twenty samples the shares vary by a few percent, on average by less."""
    found = []
    for seed in range(20):
        held_out = draw(40, 100 + seed) if has_held_out else nothing(3)
        found.append(measure(draw(100, 200 + seed).points, draw(60, seed), held_out))
    p = torch.cat(found)
    for level in (0.05, 0.1, 0.2):
        assert float((p <= level).float().mean()) == pytest.approx(level, abs=0.02)


def test_a_wide_class_is_not_judged_by_the_width_of_others() -> None:
    memory, held_out, fresh = draw(60, 0), draw(40, 1), draw(2000, 2)
    p = measure(fresh.points, memory, held_out)
    shares = [float((p[fresh.is_of(c)] <= 0.1).float().mean()) for c in range(3)]
    assert max(shares) < 0.2
    assert min(shares) > 0.03


def test_far_instances_have_the_smallest_value_that_there_is() -> None:
    held_out = draw(40, 1)
    p = measure(torch.tensor([[99.0, 99.0, 99.0], [0.0, 0.0, 0.0]]), draw(60, 0), held_out)
    assert float(p[0]) == pytest.approx(1 / 121)
    assert float(p[1]) > 0.8


def test_the_distance_to_a_class_is_that_to_the_mean_of_its_nearest_instances() -> None:
    memory, points = draw(25, 0), draw(4, 1).points
    found = distances_to_classes(points, CENTRES, memory.by_class(3))
    for i, point in enumerate(points):
        for label in range(3):
            slow = measure_slowly(point, memory.points[memory.is_of(label)])
            assert float(found[i, label]) == pytest.approx(slow, abs=1e-3)


def test_a_class_without_a_memory_is_where_its_centre_is() -> None:
    memory = Labelled(*(each[:50] for each in draw(25, 0)))  # nothing of the third class
    points = draw(4, 1).points
    found = distances_to_classes(points, CENTRES, memory.by_class(3))
    expected = torch.linalg.vector_norm(points - CENTRES[2], dim=1)
    assert torch.allclose(found[:, 2], expected, atol=1e-4)


def test_without_held_out_instances_the_memory_is_ranked_without_itself() -> None:
    memory, point = draw(FULL_SCALE_SIZE, 0), torch.tensor([[0.0, 0.0, 1.5]])
    distances, scales = [], []
    for label in range(3):
        members = memory.points[memory.is_of(label)]
        own = [
            measure_slowly(members[i], torch.cat([members[:i], members[i + 1 :]]))
            for i in range(len(members))
        ]
        scales.append(sorted(own)[(len(own) - 1) // 2])
        distances += [each / scales[-1] for each in own]  # other classes are far
    mine = measure_slowly(point[0], memory.points[memory.is_of(0)]) / scales[0]
    expected = (1 + sum(each >= mine for each in distances)) / (len(distances) + 1)
    assert float(measure(point, memory, nothing(3))) == pytest.approx(expected, abs=1e-6)


def test_without_any_labelled_instance_every_p_value_is_one() -> None:
    points = draw(5, 0).points
    found = measure_p_values(points, CENTRES, nothing(3), nothing(3))
    assert found.p.tolist() == [1.0] * 15
    assert found.nearest.tolist() == torch.cdist(points, CENTRES).argmin(1).tolist()


def test_without_a_memory_centres_stand_for_the_classes() -> None:
    held_out, fresh = draw(40, 0), draw(100, 1)
    p = measure(fresh.points, nothing(3), held_out)
    assert float((p <= 0.1).float().mean()) == pytest.approx(0.1, abs=0.05)
    assert float(measure(torch.tensor([[15.0, 20.0, 0.0]]), nothing(3), held_out)) < 0.05


def test_nearest_is_the_class_that_is_nearest_in_its_own_width() -> None:
    memory, held_out = draw(60, 0), draw(40, 1)
    between = torch.tensor([[0.0, 15.0, 0.0]])  # nearer to the first class, which is narrow
    assert int(measure_p_values(between, CENTRES, memory, held_out).nearest) == 2


@pytest.mark.parametrize("n", [1, 5, FULL_SCALE_SIZE, 2 * FULL_SCALE_SIZE])
def test_a_class_of_few_instances_leans_on_the_width_of_all(n: int) -> None:
    distances = torch.cat([torch.full((101, 2), 1.0), torch.full((n, 2), 9.0)])
    labels = torch.tensor([0] * 101 + [1] * n)
    trust = min(1.0, n / FULL_SCALE_SIZE)
    expected = [1.0, trust * 9 + (1 - trust) * 1]
    assert _scales(distances, labels).tolist() == pytest.approx(expected)


def test_a_class_of_few_instances_has_finite_p_values() -> None:
    memory, held_out = draw(60, 0), draw(40, 1)
    few = Labelled(held_out.points[:81], held_out.labels[:81])
    assert bool(torch.isfinite(measure(draw(10, 2).points, memory, few)).all())
    assert float(measure(CENTRES[2:] + 1e3, memory, few)) == pytest.approx(1 / 82)


def test_equal_instances_do_no_harm() -> None:
    same = Labelled(CENTRES.repeat(5, 1), torch.arange(3).repeat(5))
    for held_out in (same, nothing(3)):
        p = measure(torch.cat([CENTRES, CENTRES + 1]), same, held_out)
        assert p[:3].tolist() == [1.0] * 3
        assert p[3:].tolist() == pytest.approx([1 / 16] * 3)


def test_classes_may_have_any_numbers() -> None:
    memory, held_out, points = draw(20, 0), draw(10, 1), draw(30, 2).points
    numbers = torch.tensor([7, 70, 12])
    expected = rank_alone(points, memory, held_out)
    renamed = (Labelled(each.points, numbers[each.labels]) for each in (memory, held_out))
    assert torch.equal(rank_alone(points, *renamed), expected)


def test_held_out_instances_locate_the_classes_that_the_memory_lacks() -> None:
    memory = Labelled(*(each[:40] for each in draw(20, 0)))  # nothing of the third class
    p = rank_alone(draw(30, 2).points, memory, draw(20, 1))
    assert float(p[60:].median()) > 0.2
    alone = rank_alone(draw(30, 2).points, nothing(3), draw(20, 1))
    assert float(alone.median()) > 0.2


def test_an_instance_has_the_same_value_alone_and_in_company() -> None:
    memory, held_out = draw(60, 0), draw(40, 1)
    points = torch.cat([draw(10, 2).points, torch.full((50, 3), 99.0)])
    together = rank_alone(points, memory, held_out)
    alone = torch.cat([rank_alone(point[None], memory, held_out) for point in points])
    assert torch.allclose(together, alone, atol=1.5 / 121)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_where_the_origin_is_does_not_matter(offset: float) -> None:
    """Features such as years lie far from zero, which single precision must not suffer from."""
    memory, held_out, points = draw(60, 0), draw(40, 1), draw(30, 2).points
    expected = rank_alone(points, memory, held_out)
    moved = (Labelled(each.points + offset, each.labels) for each in (memory, held_out))
    assert torch.allclose(rank_alone(points + offset, *moved), expected, atol=0.05)


def test_ranks_are_shares_of_known_scores_that_are_as_large() -> None:
    generator = torch.Generator().manual_seed(0)
    known, scores = (torch.randn(n, generator=generator) for n in (50, 20))
    expected = [(1 + int((known >= score).sum())) / 51 for score in scores]
    assert rank(known, scores).tolist() == pytest.approx(expected)
    assert rank(known[:0], scores).tolist() == [1.0] * 20
