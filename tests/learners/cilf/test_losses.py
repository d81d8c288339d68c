from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from cilf.learners.cilf import losses

from ...host_waits import as_on_gpu, count_waits

ALPHA = 0.3
labels_of_batches = st.lists(st.integers(0, 5), min_size=1, max_size=20).map(torch.tensor)


def points(n: int, d: int = 3, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, d, generator=generator, dtype=torch.float64)


def squared(a: Tensor, b: Tensor) -> float:
    return sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True))


def probabilities(z: Tensor, prototypes: Tensor) -> list[float]:
    odds = [math.exp(-ALPHA * squared(z, prototype)) for prototype in prototypes]
    return [value / sum(odds) for value in odds]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ------------------------------------------------------------------------------- L_intra


def test_prototype_cross_entropy_is_minus_the_mean_log_probability() -> None:
    z, prototypes, y = points(6), points(4, seed=1), torch.tensor([0, 1, 2, 3, 3, 0])
    direct = [-math.log(probabilities(z[i], prototypes)[y[i]]) for i in range(6)]
    found = losses.prototype_cross_entropy(z, y, prototypes, ALPHA)
    assert float(found) == pytest.approx(sum(direct) / 6)


def test_cross_entropy_pulls_an_instance_towards_its_prototype() -> None:
    z = torch.zeros(1, 2, requires_grad=True)
    prototypes = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    losses.prototype_cross_entropy(z, torch.tensor([0]), prototypes, ALPHA).backward()
    assert z.grad is not None
    assert z.grad[0, 0] < 0 < z.grad[0, 1]


def test_far_instances_have_a_finite_loss() -> None:
    z = points(3, scale=1e4).float().requires_grad_()
    loss = losses.prototype_cross_entropy(z, torch.tensor([0, 1, 1]), points(2).float(), ALPHA)
    loss.backward()
    assert loss.isfinite()
    assert z.grad is not None
    assert z.grad.isfinite().all()


# ------------------------------------------------------------------------------- triplets


@given(labels_of_batches, st.integers(0, 1000))
def test_triplets_are_what_they_should_be(y: Tensor, seed: int) -> None:
    positive, negatives, usable = losses.draw_triplets(y, seeded(seed))
    classes = sorted(set(y.tolist()))
    assert negatives.shape == (len(y), len(classes))
    for i, label in enumerate(y.tolist()):
        alone = y.tolist().count(label) == 1
        assert bool(usable[i]) == (not alone and len(classes) > 1)
        assert alone or positive[i] != i
        assert y[positive[i]] == label
        for column, other in enumerate(classes):
            row = int(negatives[i, column])
            assert row == -1 if other == label else int(y[row]) == other


def test_partners_are_drawn_evenly() -> None:
    y = torch.tensor([0, 1, 0, 0, 1, 0])
    generator, n_draws = seeded(), 3000
    positives, others = torch.zeros(6, 6), torch.zeros(6, 6)
    for _ in range(n_draws):
        positive, negatives, _ = losses.draw_triplets(y, generator)
        positives[torch.arange(6), positive] += 1
        others[torch.arange(6), negatives.amax(1)] += 1
    for i, j in product(range(6), range(6)):
        mates, strangers = int((y == y[i]).sum()) - 1, int((y != y[i]).sum())
        share_positive = (1 / mates) if y[i] == y[j] and i != j else 0.0
        share_negative = (1 / strangers) if y[i] != y[j] else 0.0
        # five standard deviations of a share of 3000 draws are below 0.046
        assert float(positives[i, j]) / n_draws == pytest.approx(share_positive, abs=0.05)
        assert float(others[i, j]) / n_draws == pytest.approx(share_negative, abs=0.05)


def test_partners_of_different_anchors_are_drawn_independently() -> None:
    y = torch.tensor([0] * 50 + [1] * 50)
    _, negatives, _ = losses.draw_triplets(y, seeded())
    assert len(negatives[:50, 1].unique()) > 20


def direct_triplet_loss(
    z: Tensor, y: Tensor, margin: float, seed: int, n_classes: int | None = None
) -> float:
    """The same triplets, summed one by one."""
    positive, negatives, _ = losses.draw_triplets(y, seeded(seed), n_classes=n_classes)
    terms = []
    for i in range(len(y)):
        others = [int(j) for j in negatives[i] if j >= 0]
        if positive[i] != i and others:
            nearest = min(squared(z[i], z[j]) for j in others)
            terms.append(max(0.0, margin + squared(z[i], z[positive[i]]) - nearest))
    return sum(terms) / len(terms) if terms else 0.0


@given(labels_of_batches, st.integers(0, 1000), st.sampled_from([0.0, 1.0, 10.0]))
def test_triplet_loss_is_the_mean_over_anchors_with_partners(
    y: Tensor, seed: int, margin: float
) -> None:
    z = points(len(y), seed=seed)
    found = losses.triplet_loss(z, y, margin, seeded(seed))
    assert float(found) == pytest.approx(direct_triplet_loss(z, y, margin, seed), abs=1e-9)


@pytest.mark.parametrize(
    "y", [[0], [0, 0, 0], [0, 1, 2]], ids=["one instance", "one class", "all alone"]
)
def test_batches_without_triplets_give_zero_and_can_be_trained_on(y: list[int]) -> None:
    z = points(len(y)).requires_grad_()
    loss = losses.triplet_loss(z, torch.tensor(y), 1.0, seeded())
    loss.backward()
    assert loss.item() == 0
    assert z.grad is not None
    assert float(z.grad.abs().max()) == 0


def test_a_class_alone_in_the_batch_is_a_negative_but_no_anchor() -> None:
    z = torch.tensor([[0.0], [1.0], [1.5]], requires_grad=True)
    loss = losses.triplet_loss(z, torch.tensor([0, 0, 7]), 1.0, seeded())
    # anchors 0 and 1: [1 + 1 - 2.25]_+ = 0 and [1 + 1 - 0.25]_+ = 1.75
    assert loss.item() == pytest.approx(0.875)
    loss.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert z.grad[2] < 0  # descent moves the stranger away


def test_triplet_loss_of_coinciding_instances_is_the_margin() -> None:
    z = torch.ones(6, 2, requires_grad=True)
    loss = losses.triplet_loss(z, torch.tensor([0, 0, 0, 1, 1, 1]), 0.7, seeded())
    loss.backward()
    assert loss.item() == pytest.approx(0.7)
    assert z.grad is not None
    assert z.grad.isfinite().all()


# ---------------------------------------------------------------------------------- neighbours


def direct_neighbour_loss(z: Tensor, y: Tensor, alpha: float) -> float:
    """The same probabilities, one anchor at a time."""
    terms = []
    for i in range(len(y)):
        odds = {j: math.exp(-alpha * squared(z[i], z[j])) for j in range(len(y)) if j != i}
        own = sum(odds[j] for j in odds if y[j] == y[i])
        if any(y[j] == y[i] for j in odds):
            terms.append(-math.log(own / sum(odds.values())))
    return sum(terms) / len(terms) if terms else 0.0


@given(labels_of_batches, st.integers(0, 1000), st.sampled_from([0.1, 0.3]))
def test_neighbour_loss_is_the_mean_over_anchors_with_partners(
    y: Tensor, seed: int, alpha: float
) -> None:
    z = points(len(y), seed=seed)
    found = losses.neighbour_cross_entropy(z, y, alpha)
    assert float(found) == pytest.approx(direct_neighbour_loss(z, y, alpha), abs=1e-9)


@pytest.mark.parametrize(
    "y", [[0], [0, 0, 0], [0, 1, 2]], ids=["one instance", "one class", "all alone"]
)
def test_batches_without_other_classes_or_partners_give_zero(y: list[int]) -> None:
    z = points(len(y)).requires_grad_()
    loss = losses.neighbour_cross_entropy(z, torch.tensor(y), 0.3)
    loss.backward()
    assert loss.item() == 0
    assert z.grad is not None
    assert float(z.grad.abs().max()) == pytest.approx(0)


def test_neighbour_loss_does_not_fall_when_all_instances_draw_together() -> None:
    z, y = points(8, 4), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    z = z + 3 * torch.nn.functional.one_hot(y, 4)
    apart, together = (losses.neighbour_cross_entropy(share * z, y, 0.3) for share in (1.0, 0.01))
    assert float(together) > float(apart)
    triplets = [losses.triplet_loss(share * points(8), y, 5.0, seeded()) for share in (1.0, 0.01)]
    assert float(triplets[1]) < float(triplets[0])  # noise has no better place than one point


# ------------------------------------------------------------------------------- distillation


def test_distillation_is_the_cross_entropy_of_old_and_new_probabilities() -> None:
    z_new, z_old = points(5), points(5, seed=1)
    old, new = points(3, seed=2), points(5, seed=3)
    direct = 0.0
    for i in range(5):
        target = probabilities(z_old[i], old)
        now = probabilities(z_new[i], new[:3])  # new classes have no old probability
        direct -= sum(p * math.log(q) for p, q in zip(target, now, strict=True)) / 5
    found = losses.distillation(z_new, z_old, new, old, ALPHA)
    assert float(found) == pytest.approx(direct)


def test_distillation_is_over_the_instances_of_the_mask() -> None:
    z_new, z_old, old = points(5), points(5, seed=1), points(3, seed=2)
    mask = torch.tensor([True, False, True, False, False])
    found = losses.distillation(z_new, z_old, old, old, ALPHA, mask)
    assert found == losses.distillation(z_new[mask], z_old[mask], old, old, ALPHA)
    assert losses.distillation(z_new, z_old, old, old, ALPHA, mask & False) == 0


def test_distillation_is_smallest_where_nothing_changed() -> None:
    z, prototypes = points(8).requires_grad_(), points(3, seed=1)
    losses.distillation(z, z.detach(), prototypes, prototypes, ALPHA).backward()
    assert z.grad is not None
    assert float(z.grad.abs().max()) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------------------- R


def direct_drift(z: Tensor, y: Tensor, old: Tensor) -> float:
    terms = []
    for label in range(len(old)):
        rows = [z[i] for i in range(len(y)) if y[i] == label]
        if rows:
            terms.append(squared(torch.stack(rows).mean(0), old[label]))
    return sum(terms) / len(terms) if terms else 0.0


@given(labels_of_batches, st.integers(1, 6))
def test_drift_is_that_of_the_batch_means_of_known_classes(y: Tensor, n_known: int) -> None:
    z, old = points(len(y)), points(n_known, seed=1)
    found = losses.prototype_drift(z, y, old)
    assert float(found) == pytest.approx(direct_drift(z, y, old), abs=1e-9)


def test_no_known_class_in_the_batch_means_no_drift() -> None:
    z = points(4).requires_grad_()
    loss = losses.prototype_drift(z, torch.tensor([2, 3, 3, 2]), points(2, seed=1))
    loss.backward()
    assert loss.item() == 0
    assert z.grad is not None
    assert float(z.grad.abs().max()) == 0


def test_drift_moves_known_instances_only() -> None:
    z = points(4).requires_grad_()
    losses.prototype_drift(z, torch.tensor([0, 5, 0, 1]), points(2, seed=1)).backward()
    assert z.grad is not None
    assert (z.grad.abs().sum(1) > 0).tolist() == [True, False, True, True]


def test_negatives_come_from_as_many_other_classes_as_asked_for() -> None:
    y, generator = torch.arange(6).repeat(2), seeded()
    counts = torch.zeros(12, 6)
    for _ in range(300):
        _, negatives, _ = losses.draw_triplets(y, generator, n_negatives=2)
        assert (negatives >= 0).sum(1).tolist() == [2] * 12
        counts += negatives >= 0
    assert bool((counts[torch.arange(12), y] == 0).all())
    others = counts[counts > 0]
    assert len(others) == 12 * 5
    assert float((others / 300 - 2 / 5).abs().max()) < 0.12


# ------------------------------------------------------------------------------- on a GPU


@given(labels_of_batches, st.integers(0, 1000), st.sampled_from([None, 1, 2, 4]))
def test_triplets_among_all_classes_are_what_they_should_be(
    y: Tensor, seed: int, n_negatives: int | None
) -> None:
    n_classes = 8  # of which 6 and 7 never come
    positive, negatives, usable = losses.draw_triplets(y, seeded(seed), n_negatives, n_classes)
    classes = set(y.tolist())
    n_others = len(classes) - 1 if n_negatives is None else min(n_negatives, len(classes) - 1)
    assert negatives.shape == (len(y), n_classes)
    for i, label in enumerate(y.tolist()):
        alone = y.tolist().count(label) == 1
        assert bool(usable[i]) == (not alone and len(classes) > 1)
        assert alone or positive[i] != i
        assert y[positive[i]] == label
        found = {column: int(row) for column, row in enumerate(negatives[i]) if row >= 0}
        assert len(found) == n_others
        assert label not in found
        assert all(int(y[row]) == column for column, row in found.items())


def test_partners_among_all_classes_are_drawn_evenly() -> None:
    y, generator, n_draws = torch.tensor([0, 3, 0, 0, 3, 3]), seeded(), 3000
    chosen = torch.zeros(6, 6)
    for _ in range(n_draws):
        positive, negatives, _ = losses.draw_triplets(y, generator, 2, 5)
        chosen[torch.arange(6), positive] += 1
        chosen[torch.arange(6), negatives.amax(1)] += 1
    expected = torch.where(y[:, None] == y, 1 / 2, 1 / 3).fill_diagonal_(0)
    assert torch.allclose(chosen / n_draws, expected, atol=0.05)  # five standard deviations


@given(labels_of_batches, st.integers(0, 1000))
def test_the_mean_over_a_mask_is_the_same_on_a_gpu(y: Tensor, seed: int) -> None:
    z, old = points(len(y), seed=seed), points(3, seed=1)

    def measure() -> list[float]:
        drift = losses.prototype_drift(z, y, old)
        kept = losses.distillation(z, z + 1, points(6, seed=2), old, ALPHA, mask=y < 2)
        return [float(drift), float(kept)]

    here = measure()
    with as_on_gpu():
        assert measure() == pytest.approx(here, abs=1e-12)


@given(labels_of_batches, st.integers(0, 1000))
def test_the_triplet_loss_on_a_gpu_is_the_mean_over_anchors_with_partners(
    y: Tensor, seed: int
) -> None:
    z = points(len(y), seed=seed)
    with as_on_gpu():
        found = losses.triplet_loss(z, y, 1.0, seeded(seed), n_classes=7)
    expected = direct_triplet_loss(z, y, 1.0, seed, n_classes=7)
    assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("y", [[0], [0, 0, 0], [0, 1, 2], [3, 3, 4]])
def test_gradients_on_a_gpu_are_finite(y: list[int]) -> None:
    z, labels = points(len(y)).requires_grad_(), torch.tensor(y)
    with as_on_gpu():
        loss = losses.triplet_loss(z, labels, 1.0, seeded(), n_classes=5)
        loss = loss + losses.prototype_drift(z, labels, points(2, seed=1))
        loss = loss + losses.distillation(z, z, z, z, ALPHA, mask=labels > 9)
    loss.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_the_host_does_not_wait_for_a_gpu() -> None:
    z, y = points(6), torch.tensor([0, 0, 1, 1, 4, 3])

    def measure() -> None:
        losses.prototype_cross_entropy(z, y, points(5), ALPHA)
        losses.triplet_loss(z, y, 1.0, seeded(), n_negatives=2, n_classes=5)
        losses.prototype_drift(z, y, points(3))
        losses.distillation(z, z, points(5), points(3), ALPHA, mask=y < 2)

    assert count_waits(measure) > 0  # on the CPU there is nothing to wait for
    with as_on_gpu():
        assert count_waits(measure) == 0
