"""Validity of clusters: the mean silhouette, a block of distances at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

BLOCK = 2**20  # distances held at once, but
HEIGHT = 256  # rows of them at least
SMALL = 32  # rows, at the most, of clusters that share a block
CLOSE = 0.01  # squared distance over squared norm that single precision resolves well
EQUAL = 1e-14  # of which double precision leaves no more where there is no distance
TINY = torch.finfo(torch.float64).tiny


def silhouette(z: Tensor, assignment: Tensor) -> float:
    """Mean silhouette of the clusters; NaN when there are fewer than two, or n of them.

    It is 3.4 to 7.4 times as fast as scikit-learn's on 10,000 instances (benchmarks/silhouette.py).
    """
    _, assignment, sizes = torch.unique(assignment, return_inverse=True, return_counts=True)
    if not 2 <= len(sizes) < len(z):
        return float("nan")
    own, order = torch.sort(assignment)
    sums = _summed_distances(z[order], own, len(sizes))
    own_sum = sums.gather(1, own[:, None])[:, 0]
    own_size = sizes[own]
    inside = own_sum / (own_size - 1).clamp_min(1)
    others = (sums / sizes).scatter(1, own[:, None], torch.inf)
    outside = others.amin(1)
    score = (outside - inside) / torch.maximum(inside, outside).clamp_min(TINY)
    return float(torch.where(own_size > 1, score, 0.0).mean())


def _summed_distances(z: Tensor, own: Tensor, n_clusters: int) -> Tensor:
    """Distances of each instance to all of each cluster, summed; instances come by cluster.

    Each distance is computed once, a block of rows at a time.
    """
    z = torch.ldexp(z, -torch.frexp(z.abs().amax()).exponent)  # no square overflows or vanishes
    sums = torch.zeros(len(z), n_clusters, dtype=torch.float64, device=z.device)
    for start, end in _blocks(torch.bincount(own).tolist(), max(HEIGHT, BLOCK // len(z))):
        distances = _rows_of_distances(z[start:], end - start)
        for cluster, columns in _by_cluster(distances, own[start:], 1):
            sums[start:end, cluster] += columns.sum(1)
        for cluster, rows in _by_cluster(distances[:, end - start :], own[start:end], 0):
            sums[end:, cluster] += rows.sum(0)
    return sums


def _blocks(sizes: list[int], height: int) -> Iterator[tuple[int, int]]:
    """First and last row of blocks within one cluster, or of several small clusters."""
    start = end = 0
    for size in sizes:
        end += size
        if end - start >= SMALL or end == sum(sizes):
            n_blocks = -(-(end - start) // height)
            edges = [start + i * (end - start) // n_blocks for i in range(n_blocks + 1)]
            yield from pairwise(edges)
            start = end


def _rows_of_distances(z: Tensor, n_rows: int) -> Tensor:
    """Distances from the first rows to all.

    Distances of instances that are very close to each other are computed in double precision.
    """
    squares, norms = _squared_rows(z, n_rows)
    squares.diagonal().fill_(torch.inf)
    if bool((squares.amin(1) < CLOSE * norms).any()):
        squares, norms = _squared_rows(z.double(), n_rows)
        squares = torch.where(squares > EQUAL * norms[:, None], squares, 0)
    squares.diagonal().fill_(0)
    return squares.clamp_min_(0).sqrt_()


def _squared_rows(z: Tensor, n_rows: int) -> tuple[Tensor, Tensor]:
    """Squared distances from the first rows to all, and squared norms of these rows.

    The origin is moved to these rows, so that |a|² - 2ab + |b|² loses few digits.
    """
    z = z - z[:n_rows].mean(0)
    norms = z.square().sum(1)
    squares = torch.addmm(norms, z[:n_rows], z.T, alpha=-2)
    return squares.add_(norms[:n_rows, None]), norms[:n_rows]


def _by_cluster(distances: Tensor, own: Tensor, dim: int) -> Iterator[tuple[int, Tensor]]:
    """The rows (dim 0) or columns (dim 1) of each cluster, which lie side by side."""
    clusters, sizes = torch.unique_consecutive(own, return_counts=True)
    yield from zip(clusters.tolist(), torch.split(distances, sizes.tolist(), dim), strict=True)
