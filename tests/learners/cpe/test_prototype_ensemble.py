from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from cilf.learners.cpe.prototype_ensemble import (
    PrototypeEnsemble,
    distance_cross_entropy,
    pairwise_loss,
)


def ensemble(*prototypes: tuple[float, int, int]) -> PrototypeEnsemble:
    """On a line: (place, class, weight) of each."""
    places, labels, weights = zip(*prototypes, strict=True)
    return PrototypeEnsemble(
        torch.tensor(places)[:, None], torch.tensor(labels), torch.tensor(weights)
    )


def points(*places: float) -> Tensor:
    return torch.tensor(places)[:, None]


def listed(made: PrototypeEnsemble) -> list[tuple[float, int, int]]:
    places = made.centres[:, 0].tolist()
    return list(zip(places, made.labels.tolist(), made.weights.tolist(), strict=True))


def one_by_one(z: Tensor, y: Tensor, reach: float) -> list[tuple[list[float], int, int]]:
    """The method as it was published: instances come one at a time."""
    made: list[tuple[list[float], int, int]] = []
    for point, label in zip(z.tolist(), y.tolist(), strict=True):
        own = [i for i, (_, other, _) in enumerate(made) if other == label]
        nearest = min(own, key=lambda i: math.dist(made[i][0], point), default=None)
        if nearest is None or math.dist(made[nearest][0], point) >= reach:
            made.append((point, label, 1))
            continue
        centre, _, weight = made[nearest]
        moved = [(weight * c + p) / (weight + 1) for c, p in zip(centre, point, strict=True)]
        made[nearest] = (moved, label, weight + 1)
    return made


def test_an_instance_joins_the_nearest_prototype_of_its_class_within_reach() -> None:
    before = ensemble((0.0, 0, 3), (10.0, 0, 1), (1.5, 1, 1))
    after, own = before.assign(points(2.0, 9.0), torch.tensor([0, 0]), reach=5.0)
    assert own.tolist() == [0, 1]  # not the one of class 1, which is nearer
    assert listed(after) == [(0.5, 0, 4), (9.5, 0, 2), (1.5, 1, 1)]


def test_an_instance_out_of_reach_founds_a_prototype() -> None:
    after, own = ensemble((0.0, 0, 3)).assign(points(5.0), torch.tensor([0]), reach=5.0)
    assert own.tolist() == [1]
    assert listed(after) == [(0.0, 0, 3), (5.0, 0, 1)]


def test_a_founded_prototype_serves_the_rest_of_the_batch() -> None:
    after, own = PrototypeEnsemble.empty(1).assign(
        points(0.0, 20.0, 4.0, 21.0), torch.tensor([0, 0, 0, 0]), reach=5.0
    )
    assert own.tolist() == [0, 1, 0, 1]
    assert listed(after) == [(2.0, 0, 2), (20.5, 0, 2)]


def test_a_class_without_prototypes_founds_one_wherever_it_is() -> None:
    after, own = ensemble((0.0, 0, 3)).assign(points(0.0), torch.tensor([1]), reach=5.0)
    assert own.tolist() == [1]
    assert listed(after) == [(0.0, 0, 3), (0.0, 1, 1)]


def test_the_ensemble_itself_stays() -> None:
    before = ensemble((0.0, 0, 3))
    before.assign(points(2.0, 9.0), torch.tensor([0, 0]), reach=5.0)
    assert listed(before) == [(0.0, 0, 3)]


@given(
    st.lists(st.tuples(*[st.integers(-20, 20)] * 2, st.integers(0, 2)), min_size=1, max_size=30),
    st.floats(0.5, 30.0),
)
def test_one_instance_at_a_time_is_the_published_method(
    instances: list[tuple[int, int, int]], reach: float
) -> None:
    z = torch.tensor([row[:2] for row in instances], dtype=torch.float64)
    y = torch.tensor([row[2] for row in instances])
    made = PrototypeEnsemble.empty(2)
    made = PrototypeEnsemble(made.centres.double(), made.labels, made.weights)
    for row in range(len(z)):
        made, own = made.assign(z[row : row + 1], y[row : row + 1], reach)
        assert made.labels[own].tolist() == y[row : row + 1].tolist()
    expected = one_by_one(z, y, reach)
    assert made.labels.tolist() == [label for _, label, _ in expected]
    assert made.weights.tolist() == [weight for _, _, weight in expected]
    centres = torch.tensor([centre for centre, _, _ in expected], dtype=torch.float64)
    assert torch.allclose(made.centres, centres)


def test_a_batch_that_stays_with_its_prototypes_is_as_good_as_one_by_one() -> None:
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(2).repeat(20)
    z = 20.0 * y[:, None] + torch.randn(40, 3, generator=rng)
    together, own = PrototypeEnsemble.empty(3).assign(z[:2], y[:2], 8.0)[0].assign(z, y, 8.0)
    expected = one_by_one(torch.cat([z[:2], z]), torch.cat([y[:2], y]), 8.0)
    assert own.tolist() == y.tolist()
    assert together.weights.tolist() == [weight for _, _, weight in expected] == [21, 21]
    assert torch.allclose(together.centres, torch.tensor([c for c, _, _ in expected]), atol=1e-5)


def test_a_class_of_two_far_modes_has_two_prototypes() -> None:
    rng = torch.Generator().manual_seed(0)
    modes = torch.tensor([[0.0, 0.0], [30.0, 0.0]])
    z = modes[torch.arange(100) % 2] + torch.randn(100, 2, generator=rng)
    made = PrototypeEnsemble.empty(2)
    for rows in torch.randperm(100, generator=rng).split(16):
        made, _ = made.assign(z[rows], torch.zeros(len(rows), dtype=torch.long), 10.0)
    assert made.weights.tolist() == [50, 50]
    assert torch.allclose(made.centres.sort(0).values, modes, atol=0.5)


def test_pruning_drops_single_instances_and_halves_weights_upwards() -> None:
    before = ensemble((0.0, 0, 7), (1.0, 0, 1), (2.0, 0, 2), (3.0, 1, 8), (4.0, 1, 1))
    assert listed(before.prune()) == [(0.0, 0, 4), (2.0, 0, 1), (3.0, 1, 4)]


def test_pruning_leaves_each_class_its_heaviest_prototype() -> None:
    before = ensemble((0.0, 0, 1), (1.0, 0, 1), (2.0, 1, 1), (3.0, 2, 9))
    assert listed(before.prune()) == [(0.0, 0, 1), (2.0, 1, 1), (3.0, 2, 5)]


def test_pruning_keeps_the_heaviest_where_there_are_too_many() -> None:
    before = ensemble((0.0, 0, 4), (1.0, 0, 9), (2.0, 0, 5), (3.0, 1, 2), (4.0, 1, 2))
    assert listed(before.prune(2)) == [(1.0, 0, 5), (2.0, 0, 3), (3.0, 1, 1), (4.0, 1, 1)]
    assert listed(before.prune(1)) == [(1.0, 0, 5), (3.0, 1, 1)]


def test_a_prototype_that_nobody_joins_any_more_fades() -> None:
    made = ensemble((0.0, 0, 5), (30.0, 0, 9))
    ages = 0
    while len(made) == 2:
        made, _ = made.prune().assign(points(*[30.0] * 9), torch.zeros(9).long(), 10.0)
        ages += 1
    assert ages == 4  # 5, 3, 2, 1, gone
    assert made.centres.tolist() == [[30.0]]


def test_missing_classes_get_their_mean() -> None:
    before = ensemble((0.0, 1, 4))
    made = before.complete(points(1.0, 3.0, 9.0), torch.tensor([2, 2, 1]))
    assert listed(made) == [(0.0, 1, 4), (2.0, 2, 1)]


def test_nearest_of_all_and_of_the_own_class() -> None:
    made = ensemble((0.0, 0, 1), (4.0, 1, 1))
    distance, which = made.nearest(points(3.0, -1.0))
    assert (distance.tolist(), which.tolist()) == ([1.0, 1.0], [1, 0])
    distance, which = made.nearest_own(points(3.0, -1.0, 0.0), torch.tensor([0, 1, 2]))
    assert distance.tolist() == [3.0, 5.0, math.inf]
    assert which[:2].tolist() == [0, 1]


def test_stored_and_back() -> None:
    made = ensemble((0.5, 0, 3), (4.0, 1, 1))
    again = PrototypeEnsemble.restore(made.arrays("p"), "p", torch.device("cpu"))
    assert listed(again) == listed(made)
    assert [v.dtype for v in vars(again).values()] == [v.dtype for v in vars(made).values()]


def test_dce_is_minus_the_log_odds_of_the_own_prototype() -> None:
    rng = torch.Generator().manual_seed(0)
    z, centres = torch.randn(6, 3, generator=rng), torch.randn(4, 3, generator=rng)
    own = torch.tensor([0, 1, 2, 3, 0, 1])
    slow = 0.0
    for point, prototype in zip(z.tolist(), own.tolist(), strict=True):
        odds = [math.exp(-0.2 * math.dist(point, centre) ** 2) for centre in centres.tolist()]
        slow -= math.log(odds[prototype] / sum(odds)) / len(z)
    assert float(distance_cross_entropy(z, own, centres, 0.2)) == pytest.approx(slow, rel=1e-5)


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_pairwise_loss_is_a_soft_hinge_on_squared_distances(beta: float) -> None:
    rng = torch.Generator().manual_seed(0)
    z, prototypes = 2 * torch.randn(6, 3, generator=rng), torch.randn(6, 3, generator=rng)
    same = torch.tensor([True, False, True, False, False, True])
    slow = 0.0
    for point, centre, like in zip(z.tolist(), prototypes.tolist(), same.tolist(), strict=True):
        v = 5.0 - (1 if like else -1) * (10.0 - math.dist(point, centre) ** 2)
        slow += math.log(1 + math.exp(beta * v)) / beta / len(z)
    found = pairwise_loss(z, prototypes, same, margin=5.0, boundary=10.0, beta=beta)
    assert float(found) == pytest.approx(slow, rel=1e-5)


@pytest.mark.parametrize("same", [True, False])
def test_pairwise_loss_pulls_to_the_own_class_and_pushes_from_others(same: bool) -> None:
    z = torch.tensor([[3.0, 0.0]], requires_grad=True)
    prototype = torch.tensor([[0.0, 0.0]])
    loss = pairwise_loss(z, prototype, torch.tensor([same]), margin=5.0, boundary=10.0, beta=1.0)
    (gradient,) = torch.autograd.grad(loss, z)
    step = -gradient[0, 0]  # descent goes this way
    assert bool(step < 0) == same
    assert step.abs() > 0.1
