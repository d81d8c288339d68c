"""Prototypes: class means in the embedding, and how they follow it."""

from __future__ import annotations

import torch
from torch import Tensor


def count_instances(y: Tensor, n_classes: int) -> Tensor:
    """Number of instances of each class. The host does not wait for it, as bincount does.

    >>> count_instances(torch.tensor([2, 0, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    return y.new_zeros(n_classes).index_add_(0, y, torch.ones_like(y))


def class_means(z: Tensor, y: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Mean embedding of each class (zero where it has none) and the number of its instances."""
    counts = count_instances(y, n_classes).to(z)
    sums = z.new_zeros(n_classes, z.shape[1]).index_add(0, y, z)
    return sums / counts.clamp_min(1)[:, None], counts


def anneal(old: Tensor, means: Tensor, counts: Tensor, beta: float) -> Tensor:
    """beta * old + (1 - beta) * mean for every class that was seen; the others stay."""
    moved = beta * old + (1 - beta) * means
    return torch.where((counts > 0)[:, None], moved, old)
