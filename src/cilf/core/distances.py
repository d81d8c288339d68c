"""Distances between points, as clustering, losses and readouts need them."""

from __future__ import annotations

from torch import Tensor


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """Squared Euclidean distances: (n, d) and (m, d) -> (n, m)."""
    cross = a @ b.T
    return ((a * a).sum(1)[:, None] - 2 * cross + (b * b).sum(1)[None, :]).clamp_min(0)
