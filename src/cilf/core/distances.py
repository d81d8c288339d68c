"""Distances between points, as clustering, losses and readouts need them."""

from __future__ import annotations

import torch
from torch import Tensor


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """Squared Euclidean distances: (n, d) and (m, d) -> (n, m)."""
    cross = a @ b.T
    return ((a * a).sum(1)[:, None] - 2 * cross + (b * b).sum(1)[None, :]).clamp_min(0)


def exact_distances(a: Tensor, b: Tensor) -> Tensor:
    """Euclidean distances without cancellation, at several times the cost: (n, m).

    >>> far = torch.tensor([[1e6], [1e6 + 1]])
    >>> exact_distances(far, far).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
