"""How far apart two clusters lie, and when they are one class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.core.types import Floats

MIN_HALVED_SIZE = 6  # instances of a class that can be split into halves
MIN_CLUSTER_SIZE = 3  # instances of a cluster that has a support, and a separation from others
MAX_PAIRED_CLASSES = 20  # whose distances tell how far apart two classes lie


class SeparationScale(NamedTuple):
    """The separations of known classes, which those of novel clusters are compared with."""

    halves: float  # of two halves of one known class
    pairs: float  # of two known classes

    @classmethod
    def measure(cls, known: list[Tensor], generator: torch.Generator) -> SeparationScale:
        """The medians over the known classes. Both are 0 if no class can be split."""
        known = [members for members in known if len(members) >= MIN_HALVED_SIZE]
        if not known:
            return cls(0.0, 0.0)
        halves = float(np.median([separate_halves(members, generator) for members in known]))
        paired = known[:MAX_PAIRED_CLASSES]
        labels = torch.repeat_interleave(
            torch.arange(len(paired)), torch.tensor([len(members) for members in paired])
        )
        between = separations(torch.cat(paired), labels.to(paired[0].device), len(paired))
        pairs = between[np.triu_indices(len(paired), 1)]
        return cls(halves, max(halves, float(np.median(pairs))) if len(pairs) else halves)

    def at(self, place: float) -> float:
        """The separation at a place between halves of a class (0) and two classes (1).

        >>> round(SeparationScale(halves=2.0, pairs=8.0).at(0.5), 6)
        4.0
        """
        return float(self.halves ** (1 - place) * self.pairs**place)


def separate_halves(members: Tensor, generator: torch.Generator) -> float:
    """Separation of the two halves that 2-means splits one class into."""
    halves = semi_supervised_kmeans(members, members[:0], 2, generator=generator)
    return float(separations(members, halves.assignment, 2)[0, 1])


def separations(points: Tensor, assignment: Tensor, n_clusters: int) -> Floats:
    """Distance of two clusters over their pooled deviation, on the line between them: (n, n).

    Each instance is projected on the line between the mean of the other cluster and the mean of
    the others of its own. A line through its own position would separate anything if there are few
    instances in many dimensions. Clusters of fewer than three instances have no separation: 0.
    """
    one_hot = torch.nn.functional.one_hot(assignment, n_clusters).to(torch.float64)
    sizes = one_hot.sum(0)
    centred = (points - points.mean(0)).double()
    means = one_hot.T @ centred / sizes.clamp_min(1)[:, None]
    along = _positions(centred, means, assignment, sizes)  # (n, n_clusters)
    mean = one_hot.T @ along / sizes.clamp_min(1)[:, None]
    scatter = one_hot.T @ (along - mean[assignment]).square()
    gap = mean + mean.T - torch.cdist(means, means)
    freedom = (sizes[:, None] + sizes - 2).clamp_min(1)
    found = (gap / ((scatter + scatter.T) / freedom).sqrt().clamp_min(1e-12)).clamp_min(0)
    found[sizes < MIN_CLUSTER_SIZE] = 0
    found[:, sizes < MIN_CLUSTER_SIZE] = 0
    result: Floats = found.fill_diagonal_(0).float().cpu().numpy()
    return result


def _positions(points: Tensor, means: Tensor, assignment: Tensor, sizes: Tensor) -> Tensor:
    """Distance of each instance from each cluster's mean, towards the rest of its own cluster."""
    n = sizes[assignment][:, None]  # (n, 1)
    rest = (n * means[assignment] - points) / (n - 1).clamp_min(1)
    squares = means.square().sum(1)
    to_points, to_rest = points @ means.T, rest @ means.T
    along = (points * rest).sum(1, keepdim=True) - to_points - to_rest + squares
    length = (rest.square().sum(1, keepdim=True) - 2 * to_rest + squares).clamp_min(0).sqrt()
    return along / length.clamp_min(1e-12)


def merge_clusters(
    distances: Floats, chosen: list[int], closest: float, at_least: int = 1
) -> list[list[int]]:
    """Merge the nearest pair of the chosen clusters until all are ``closest`` apart.

    ``at_least`` so many clusters stay. A merged cluster is as far from another as its clusters
    are on average: measured as one cluster it would be wide, and so near to everything.
    """
    merged = [[i] for i in chosen]
    means = distances[np.ix_(chosen, chosen)].astype(np.float64)
    np.fill_diagonal(means, np.inf)
    while len(merged) > at_least:
        i, j = sorted(np.unravel_index(int(means.argmin()), means.shape))
        if means[i, j] >= closest:
            break
        n_i, n_j = len(merged[i]), len(merged[j])
        means[i] = means[:, i] = (n_i * means[i] + n_j * means[j]) / (n_i + n_j)
        means = np.delete(np.delete(means, j, 0), j, 1)
        merged[i] += merged.pop(j)
    return merged
