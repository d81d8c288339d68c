"""Prototypes: class means in the embedding, and how they follow it."""

from __future__ import annotations

import torch
from torch import Tensor


def class_means(
    z: Tensor, y: Tensor, n_classes: int, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Weighted mean embedding of each class (zero where it has none) and its total weight."""
    if weights is None:
        weights = torch.ones(len(z), dtype=z.dtype, device=z.device)
    total = torch.zeros(n_classes, dtype=z.dtype, device=z.device).index_add(0, y, weights)
    sums = torch.zeros(n_classes, z.shape[1], dtype=z.dtype, device=z.device)
    sums = sums.index_add(0, y, z * weights[:, None])
    return sums / torch.where(total > 0, total, 1.0)[:, None], total


def anneal(old: Tensor, means: Tensor, counts: Tensor, beta: float) -> Tensor:
    """beta * old + (1 - beta) * mean for every class that was seen; the others stay."""
    moved = beta * old + (1 - beta) * means
    return torch.where((counts > 0)[:, None], moved, old)
