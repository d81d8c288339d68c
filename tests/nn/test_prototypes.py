from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from cilf.nn.prototypes import anneal, class_means, count_instances

N_CLASSES = 4
some_labels = st.lists(st.integers(0, N_CLASSES - 1), max_size=15)


def points(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(some_labels)
def test_class_means_are_means_of_members(labels: list[int]) -> None:
    z = points(len(labels))
    means, counts = class_means(z, torch.tensor(labels, dtype=torch.long), N_CLASSES)
    for label in range(N_CLASSES):
        members = [i for i, own in enumerate(labels) if own == label]
        assert int(counts[label]) == len(members)
        for feature in range(3):
            total = sum(float(z[i, feature]) for i in members)
            expected = total / len(members) if members else 0.0
            assert float(means[label, feature]) == pytest.approx(expected)


def test_class_means_pass_gradients_and_keep_the_type() -> None:
    z = points(4).float().requires_grad_()
    means, counts = class_means(z, torch.tensor([0, 0, 0, 1]), 3)
    means[0].sum().backward()
    assert z.grad is not None
    assert torch.allclose(z.grad[:, 0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]))
    assert means.dtype == counts.dtype == torch.float32


@pytest.mark.parametrize("beta", [0.0, 0.8, 1.0])
def test_seen_classes_move_and_the_others_stay(beta: float) -> None:
    old, means = points(3), points(3, seed=1)
    moved = anneal(old, means, torch.tensor([5.0, 0.0, 1.0]), beta)
    assert torch.equal(moved[1], old[1])
    for label in (0, 2):
        for feature in range(3):
            expected = beta * float(old[label, feature]) + (1 - beta) * float(means[label, feature])
            assert float(moved[label, feature]) == pytest.approx(expected)


def test_annealing_leaves_the_old_prototypes_alone() -> None:
    old = points(3)
    before = old.clone()
    anneal(old, points(3, seed=1), torch.ones(3), 0.5)
    assert torch.equal(old, before)


@given(some_labels)
def test_instances_are_counted(labels: list[int]) -> None:
    y = torch.tensor(labels, dtype=torch.long)
    found = count_instances(y, N_CLASSES)
    assert found.tolist() == torch.bincount(y, minlength=N_CLASSES).tolist()
