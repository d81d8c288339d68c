"""Clustering: k-means in which some centres belong to known classes, and its validity."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.nn.losses import squared_distances
from cilf.nn.prototypes import annealed, class_means


@dataclass(frozen=True)
class Clusters:
    """Centres, known classes first, and the centre of each instance."""

    centres: Tensor  # (n_known + n_free, d)
    assignment: Tensor  # (n,)
    n_known: int

    @property
    def free(self) -> Tensor:
        """The centres of novel classes."""
        return self.centres[self.n_known :]


def semi_supervised_kmeans(
    z: Tensor,
    known: Tensor,
    n_free: int,
    *,
    generator: torch.Generator,
    beta: float = 1.0,
    weights: Tensor | None = None,
    n_starts: int = 10,
    n_steps: int = 30,
) -> Clusters:
    """Weighted k-means with ``n_free`` centres beside those of the known classes.

    A known centre moves to beta * its prototype + (1 - beta) * the weighted mean of its
    instances, a free one to the weighted mean; the start with the least weighted inertia wins.
    """
    if n_free == 0:
        return _lloyd(z, known, known, beta, weights, n_steps)[0]
    runs = []
    for _ in range(n_starts):
        start = torch.cat([known, _spread(z, known, n_free, generator, weights)])
        runs.append(_lloyd(z, known, start, beta, weights, n_steps))
    return min(runs, key=lambda run: run[1])[0]


def settled(
    z: Tensor,
    known: Tensor,
    free: Tensor,
    *,
    beta: float = 1.0,
    weights: Tensor | None = None,
    n_steps: int = 30,
) -> Clusters:
    """The clusters that k-means settles in from these free centres."""
    return _lloyd(z, known, torch.cat([known, free]), beta, weights, n_steps)[0]


def _spread(
    z: Tensor, taken: Tensor, n: int, generator: torch.Generator, weights: Tensor | None
) -> Tensor:
    """k-means++: instances drawn far from the centres there are."""
    chosen: list[Tensor] = []
    if len(taken):
        nearest = squared_distances(z, taken).amin(1)
    else:
        nearest = torch.ones(len(z), device=z.device)
    for _ in range(n):
        odds = (nearest if weights is None else nearest * weights).double().cpu()
        if float(odds.sum()) <= 0:
            odds = torch.ones(len(z), dtype=torch.float64)
        pick = int(torch.multinomial(odds, 1, generator=generator))
        chosen.append(z[pick])
        nearest = torch.minimum(nearest, squared_distances(z, z[pick : pick + 1])[:, 0])
    return torch.stack(chosen)


def _lloyd(
    z: Tensor, known: Tensor, centres: Tensor, beta: float, weights: Tensor | None, n_steps: int
) -> tuple[Clusters, float]:
    n_known = len(known)
    assignment = squared_distances(z, centres).argmin(1)
    for _ in range(n_steps):
        means, mass = class_means(z, assignment, len(centres), weights)
        moved = torch.cat(
            [
                annealed(known, means[:n_known], mass[:n_known], beta),
                annealed(centres[n_known:], means[n_known:], mass[n_known:], 0.0),
            ]
        )
        reassigned = squared_distances(z, moved).argmin(1)
        settled = bool((reassigned == assignment).all())
        centres, assignment = moved, reassigned
        if settled:
            break
    nearest = squared_distances(z, centres).amin(1)
    inertia = float((nearest if weights is None else nearest * weights).sum())
    return Clusters(centres, assignment, n_known), inertia


def fill_empty(assignment: Tensor, distances: Tensor, n_known: int = 0) -> Tensor:
    """Give each empty novel cluster the instance that lies farthest from its own centre.

    ``distances`` are those to all centres, the ``n_known`` known classes first; a known class
    may lose all its instances, a novel one keeps its last.
    """
    assignment = assignment.clone()
    n_clusters = distances.shape[1]
    for label in range(n_known, n_clusters):
        sizes = torch.bincount(assignment, minlength=n_clusters)
        if sizes[label] == 0:
            own = distances.gather(1, assignment[:, None])[:, 0]
            last = (sizes[assignment] < 2) & (assignment >= n_known)
            assignment[own.masked_fill(last, -1.0).argmax()] = label
    return assignment


def silhouette(z: Tensor, assignment: Tensor) -> float:
    """Mean silhouette of the clusters; NaN when there are fewer than two, or n of them."""
    _, assignment, sizes = torch.unique(assignment, return_inverse=True, return_counts=True)
    n, n_clusters = len(z), len(sizes)
    if not 2 <= n_clusters < n:
        return float("nan")
    members = torch.nn.functional.one_hot(assignment, n_clusters).to(z.dtype)
    sums = torch.cat(
        [_distances(block, z) @ members for block in torch.split(z, 1024)]
    )  # (n, clusters)
    own_sum = sums.gather(1, assignment[:, None])[:, 0]
    own_size = sizes[assignment]
    inside = own_sum / (own_size - 1).clamp_min(1)
    others = (sums / sizes).scatter(1, assignment[:, None], torch.inf)
    outside = others.amin(1)
    score = (outside - inside) / torch.maximum(inside, outside).clamp_min(1e-12)
    return float(torch.where(own_size > 1, score, 0.0).mean())


def _distances(a: Tensor, b: Tensor) -> Tensor:
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
