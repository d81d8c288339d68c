"""The number of classes of a window, estimated with known classes as probes.

Some known classes are *anchors*: their instances keep their labels in k-means. The other known
classes are for *validation*: their labels are hidden. The best number of classes is the one with
which k-means finds the hidden classes again (Han, Vedaldi and Zisserman 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.clustering.silhouette import silhouette
from cilf.core import validation
from cilf.core.parameters import Part
from cilf.core.types import Array, Bools, Ints
from cilf.nn.prototypes import class_means

AVERAGE, ACCURACY, SILHOUETTE = RULES = ("average", "accuracy", "silhouette")


class Probes(NamedTuple):
    """Labelled instances of known classes; classes without instances count too."""

    z: Tensor  # (n, d)
    y: Ints  # (n,)
    n_known: int


class Clustering(NamedTuple):
    """The clusters of a window, for the known classes and some more."""

    assignment: Ints  # (n,) of the window's instances
    silhouette: float  # of all but the anchors
    accuracy: float  # on the validation classes
    known: frozenset[int] = frozenset()  # the clusters of the known classes


@dataclass(frozen=True, kw_only=True, repr=False)
class Counting(Part):
    """The estimation of the number of novel classes in a window.

    Parameters
    ----------
    rule : {"average", "accuracy", "silhouette"}, default="average"
        Number that is chosen. "silhouette" takes the one with the best silhouette, "accuracy" the
        one with the best accuracy on known classes, "average" the mean of both.
    k_max : int or None, default=None
        Largest number of novel classes that is tried in one window. None takes a quarter of the
        root of the window's size, from 8 to 32. No more than one class for every 16 instances,
        plus one, is tried.
    tie : float, default=0.15
        Difference from the best accuracy up to which an accuracy counts as the best.
    anchor_share : float, default=0.6
        Share of the known classes that keep their labels.
    n_splits : int, default=3
        Number of splits into anchors and validation classes, which are averaged.
    least_ratio : float, default=0.01
        Size of a cluster, relative to that of the largest, above which it counts.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "rule": validation.among(RULES),
        "k_max": validation.optional(validation.whole(1)),
        "n_splits": validation.whole(1),
        **dict.fromkeys(["tie", "anchor_share", "least_ratio"], validation.in_range(0.0, 1.0)),
    }

    rule: str = AVERAGE
    k_max: int | None = None
    tie: float = 0.15
    anchor_share: float = 0.6
    n_splits: int = 3
    least_ratio: float = 0.01

    def cluster(
        self, window: Tensor, probes: Probes, extra: Sequence[int], rng: torch.Generator
    ) -> dict[int, list[Clustering]]:
        """For each number of extra classes, one clustering for each split of the known classes."""
        splits = list(anchor_splits(probes.y, self.anchor_share, self.n_splits))
        return {
            k: [_cluster(window, probes, anchor, probes.n_known + k, rng) for anchor in splits]
            for k in extra
        }

    def choose(self, clusterings: dict[int, list[Clustering]]) -> int:
        """Choose the number of extra classes.

        Each measure prefers the largest number that is best on average over the splits. The mean of
        the two numbers is rounded up.
        """
        silhouettes = {k: _mean([c.silhouette for c in v]) for k, v in clusterings.items()}
        accuracies = {k: _mean([c.accuracy for c in v]) for k, v in clusterings.items()}
        by_silhouette = _last_best(silhouettes, 0)
        if self.rule == SILHOUETTE or all(math.isnan(value) for value in accuracies.values()):
            return by_silhouette
        by_accuracy = _last_best(accuracies, self.tie)
        return (
            by_accuracy if self.rule == ACCURACY else math.ceil((by_silhouette + by_accuracy) / 2)
        )

    def count_filled(self, clusterings: list[Clustering]) -> int:
        """Median number of clusters that are large enough to count."""
        filled = [find_filled(each.assignment, self.least_ratio) for each in clusterings]
        return round(float(np.median([len(clusters) for clusters in filled])))

    def count_novel(self, clusterings: list[Clustering]) -> int:
        """Median number of clusters that are large enough to count and are of no known class."""
        filled = [find_filled(each.assignment, self.least_ratio) for each in clusterings]
        novel = [found - each.known for found, each in zip(filled, clusterings, strict=True)]
        return round(float(np.median([len(clusters) for clusters in novel])))


def anchor_splits(y: Ints, anchor_share: float, n_splits: int) -> Iterator[Bools]:
    """Whether each labelled instance is an anchor, for one split after the other.

    The classes for validation move on from split to split until each has been among them.

    >>> [split.tolist() for split in anchor_splits(np.array([0, 1, 2]), 0.6, n_splits=2)]
    [[True, True, False], [False, True, True]]
    """
    classes = np.unique(y)
    n_validation = max(1, len(classes) - max(1, round(anchor_share * len(classes))))
    n_different = max(1, math.ceil(len(classes) / n_validation))
    for split in range(min(n_splits, n_different)):
        yield np.isin(y, np.roll(classes, -split * n_validation)[:-n_validation])


def _cluster(
    window: Tensor, probes: Probes, anchor: Bools, n_clusters: int, rng: torch.Generator
) -> Clustering:
    """Semi-supervised k-means of anchors (fixed), validation classes and window."""
    anchor_z, validation_z = probes.z[anchor], probes.z[~anchor]
    classes, own = np.unique(probes.y[anchor], return_inverse=True)
    labels = torch.from_numpy(own).to(anchor_z.device)
    means, sizes = class_means(anchor_z, labels, len(classes))
    free = torch.cat([validation_z, window])
    found = semi_supervised_kmeans(
        free, means, n_clusters - len(classes),
        known_sizes=sizes, generator=rng, n_steps=100,
    ).assignment  # fmt: skip
    assignment = found.cpu().numpy()
    n_validation = len(validation_z)
    matched = match_clusters(probes.y[~anchor], assignment[:n_validation])
    known = frozenset(range(len(classes))) | frozenset(matched.values())
    right = clustering_accuracy(probes.y[~anchor], assignment[:n_validation])
    return Clustering(assignment[n_validation:], silhouette(free, found), right, known)


def match_clusters(truth: Ints, cluster: Ints) -> dict[int, int]:
    """The cluster of each class, by the matching that is right for the most instances.

    >>> match_clusters(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 3]))
    {0: 5, 1: 3}
    """
    if len(truth) == 0:
        return {}
    classes, rows = np.unique(truth, return_inverse=True)
    clusters, columns = np.unique(cluster, return_inverse=True)
    together = np.zeros((len(classes), len(clusters)))
    np.add.at(together, (rows, columns), 1)
    best = zip(*linear_sum_assignment(together, maximize=True), strict=True)
    return {int(classes[row]): int(clusters[column]) for row, column in best}


def clustering_accuracy(truth: Ints, cluster: Ints) -> float:
    """Share of instances in the cluster that is matched with their class, by the best matching.

    >>> clustering_accuracy(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 3]))
    0.75
    """
    if len(truth) == 0:
        return math.nan
    matched = match_clusters(truth, cluster)
    right = [matched.get(int(label)) == int(own) for label, own in zip(truth, cluster, strict=True)]
    return float(np.mean(right))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _last_best(curve: dict[int, float], tie: float) -> int:
    defined = {k: value for k, value in curve.items() if not math.isnan(value)}
    best = max(defined.values(), default=0.0)
    return max((k for k, value in defined.items() if value >= best - tie), default=0)


def curve(clusterings: dict[int, list[Clustering]]) -> dict[int, float]:
    """The mean of the measures for each number of extra classes."""
    both = {k: [(c.silhouette + c.accuracy) / 2 for c in v] for k, v in clusterings.items()}
    return {k: _mean(values) for k, values in both.items()}


def find_filled(assignment: Array, least_ratio: float) -> frozenset[int]:
    """The clusters of at least this share of the largest cluster's size.

    >>> sorted(find_filled(np.array([0] * 50 + [1] * 60 + [2]), 0.1))
    [0, 1]
    """
    sizes = np.bincount(assignment)
    filled = np.flatnonzero(sizes >= max(1, least_ratio * sizes.max()))
    return frozenset(filled.tolist())
