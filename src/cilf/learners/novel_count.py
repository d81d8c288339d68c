"""How many novel classes a window holds.

``excess_mass`` asks which free clusters hold more instances than known data explain, and joins
those that look like halves of one class. ``largest`` and ``sharpest_bend`` read a validity curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from cilf.learners.clustering import Clusters, semi_supervised_kmeans
from cilf.nn.losses import squared_distances


def excess_mass(
    clusterings: Mapping[int, Clusters],
    z: Tensor,
    calibration: Tensor,
    calibration_y: Tensor,
    *,
    surplus: float = 2.0,
    least_share: float = 0.03,
    halves: float = 1.15,
    generator: torch.Generator,
) -> int:
    """Number of novel classes, from clusterings of the window with 0, 1, 2, ... free centres.

    ``calibration`` are embeddings of held-out instances of known classes. A free cluster is
    real if it holds more than ``surplus`` times the mass known data put there plus
    ``least_share`` of the window; two real ones are one class if they lie closer, in their own
    deviations, than ``halves`` times two halves of a known class do.
    """
    best: list[Tensor] = []
    for clusters in clusterings.values():
        real = real_clusters(clusters, z, calibration, surplus, least_share)
        if len(real) > len(best):
            best = real
    split = typical_split(calibration, calibration_y, generator)
    return _count_joined(best, halves * split)


def real_clusters(
    clusters: Clusters, z: Tensor, calibration: Tensor, surplus: float, least_share: float
) -> list[Tensor]:
    """The members of each free cluster that holds more than known data explain."""
    n_known, n_free = clusters.n_known, len(clusters.free)
    known_share = n_known / (n_known + n_free)
    stray = torch.zeros(n_free, device=z.device)
    if len(calibration):
        nearest = squared_distances(calibration, clusters.centres).argmin(1)
        counts = torch.bincount(nearest, minlength=n_known + n_free)[n_known:]
        stray = counts / len(calibration)
    real = []
    for j in range(n_free):
        members = z[clusters.assignment == n_known + j]
        expected = float(stray[j]) * len(z) * known_share
        if len(members) > surplus * expected + least_share * len(z):
            real.append(members)
    return real


def typical_split(calibration: Tensor, y: Tensor, generator: torch.Generator) -> float:
    """Median separation of two halves (2-means) of one known class; 0 without enough data."""
    separations = []
    for label in y.unique():
        members = calibration[y == label]
        if len(members) >= 4:
            halves = semi_supervised_kmeans(members, members[:0], 2, generator=generator)
            separations.append(
                separation(members[halves.assignment == 0], members[halves.assignment == 1])
            )
    return float(np.median(separations)) if separations else 0.0


def separation(a: Tensor, b: Tensor) -> float:
    """d': distance of two means over the pooled deviation, on the line between them."""
    if len(a) == 0 or len(b) == 0:
        return 0.0
    axis = a.mean(0) - b.mean(0)
    length = float(axis.norm())
    if length == 0:
        return 0.0
    along_a, along_b = a @ axis / length, b @ axis / length
    spread = (along_a - along_a.mean()).square().sum() + (along_b - along_b.mean()).square().sum()
    pooled = math.sqrt(float(spread) / max(1, len(a) + len(b) - 2))
    return length / max(pooled, 1e-12)


def _count_joined(groups: list[Tensor], closest: float) -> int:
    """How many groups are left when the nearest pair is joined until all are apart."""
    groups = list(groups)
    while len(groups) > 1:
        pairs = [(separation(groups[i], groups[j]), i, j)
                 for i in range(len(groups)) for j in range(i)]  # fmt: skip
        nearest, i, j = min(pairs)
        if nearest >= closest:
            break
        groups[j] = torch.cat([groups[j], groups.pop(i)])
    return len(groups)


def largest(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity is largest.

    >>> largest({0: 0.1, 1: 0.4, 2: 0.3})
    1
    """
    defined = {k: value for k, value in curve.items() if not math.isnan(value)}
    return max(defined, key=lambda k: defined[k], default=0)


def sharpest_bend(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity curve bends most (its curvature).

    >>> sharpest_bend({0: 0.0, 1: 0.5, 2: 1.0, 3: 0.9, 4: 0.8})
    2
    """
    defined = sorted((k, value) for k, value in curve.items() if not math.isnan(value))
    if len(defined) < 3:
        return largest(curve)
    ks = np.array([k for k, _ in defined], dtype=float)
    values = np.array([value for _, value in defined])
    slope = np.gradient(values, ks)
    bend = np.abs(np.gradient(slope, ks)) / (1 + slope**2) ** 1.5
    return int(ks[bend[1:-1].argmax() + 1])
