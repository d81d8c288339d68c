"""Distances, against sums written out."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from cilf.core.distances import squared_distances


def points(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, generator=generator, dtype=torch.float64)


def squared(a: Tensor, b: Tensor) -> float:
    return sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True))


def test_squared_distances_are_sums_of_squared_differences() -> None:
    a, b = points(5), points(4, seed=1)
    distances = squared_distances(a, b)
    for i, j in product(range(5), range(4)):
        assert float(distances[i, j]) == pytest.approx(squared(a[i], b[j]))


def test_rounding_never_makes_a_distance_negative() -> None:
    far = 1000 + points(50).float()
    assert float(squared_distances(far, far).min()) >= 0


def test_distances_to_nothing() -> None:
    assert squared_distances(points(3), points(0)).shape == (3, 0)
    assert squared_distances(points(0), points(3)).shape == (0, 3)
