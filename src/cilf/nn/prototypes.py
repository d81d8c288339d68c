"""Prototypes: class means in the embedding, and how they follow it."""

from __future__ import annotations

import torch
from torch import Tensor


def class_means(z: Tensor, y: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Mean embedding of each class (zero where it has none) and the number of its instances."""
    counts = torch.bincount(y, minlength=n_classes).to(z)
    sums = z.new_zeros(n_classes, z.shape[1]).index_add(0, y, z)
    return sums / counts.clamp_min(1)[:, None], counts


def anneal(old: Tensor, means: Tensor, counts: Tensor, beta: float) -> Tensor:
    """beta * old + (1 - beta) * mean for every class that was seen; the others stay."""
    moved = beta * old + (1 - beta) * means
    return torch.where((counts > 0)[:, None], moved, old)
