"""How many classes a window holds, judged by classes that are known: they serve as probes.

Some known classes are *anchors*, whose instances keep their labels in k-means; others are for
*validation*: their labels are hidden, and k-means is right about the number of classes where it
finds them again. (Han, Vedaldi and Zisserman 2019.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.clustering.silhouette import silhouette
from cilf.core.types import Array, Bools, Ints
from cilf.nn.prototypes import class_means

AVERAGE, ACCURACY, SILHOUETTE = RULES = ("average", "accuracy", "silhouette")


class Probes(NamedTuple):
    """Labelled instances of known classes; all of ``range(n_known)`` count, seen or not."""

    z: Tensor  # (n, d)
    y: Ints  # (n,)
    n_known: int


class Cut(NamedTuple):
    """A window cut into the known classes and some more."""

    assignment: Ints  # (n,) of the window's instances
    silhouette: float  # of all but the anchors
    accuracy: float  # on the validation classes


def cuts(
    window: Tensor,
    probes: Probes,
    extra: Sequence[int],
    *,
    anchor_share: float,
    n_splits: int,
    generator: torch.Generator,
) -> dict[int, list[Cut]]:
    """For each number of extra classes, one cut for each split into anchors and validation."""
    splits = list(anchor_splits(probes.y, anchor_share, n_splits))
    return {
        k: [_cut(window, probes, anchor, probes.n_known + k, generator) for anchor in splits]
        for k in extra
    }


def anchor_splits(y: Ints, anchor_share: float, n_splits: int) -> Iterator[Bools]:
    """Which labelled instances are anchors, one split after the other.

    The classes for validation move on from split to split until each has been among them.

    >>> [split.tolist() for split in anchor_splits(np.array([0, 1, 2]), 0.6, n_splits=2)]
    [[True, True, False], [False, True, True]]
    """
    classes = np.unique(y)
    n_validation = max(1, len(classes) - max(1, round(anchor_share * len(classes))))
    n_different = max(1, math.ceil(len(classes) / n_validation))
    for split in range(min(n_splits, n_different)):
        yield np.isin(y, np.roll(classes, -split * n_validation)[:-n_validation])


def _cut(
    window: Tensor, probes: Probes, anchor: Bools, n_clusters: int, generator: torch.Generator
) -> Cut:
    """Semi-supervised k-means of anchors (fixed), validation classes and window."""
    anchor_z, validation_z = probes.z[anchor], probes.z[~anchor]
    classes, own = np.unique(probes.y[anchor], return_inverse=True)
    labels = torch.from_numpy(own).to(anchor_z.device)
    means, sizes = class_means(anchor_z, labels, len(classes))
    free = torch.cat([validation_z, window])
    found = semi_supervised_kmeans(
        free, means, n_clusters - len(classes),
        known_sizes=sizes, generator=generator, n_steps=100,
    ).assignment  # fmt: skip
    assignment = found.cpu().numpy()
    n_validation = len(validation_z)
    right = clustering_accuracy(probes.y[~anchor], assignment[:n_validation])
    return Cut(assignment[n_validation:], silhouette(free, found), right)


def clustering_accuracy(truth: Ints, cluster: Ints) -> float:
    """Share of instances in the cluster that their class is matched with, one to one at best.

    >>> clustering_accuracy(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 3]))
    0.75
    """
    if len(truth) == 0:
        return math.nan
    rows, columns = (np.unique(each, return_inverse=True)[1] for each in (truth, cluster))
    together = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(together, (rows, columns), 1)
    best = linear_sum_assignment(together, maximize=True)
    return float(together[best].sum() / len(truth))


def chosen(curves: dict[int, list[Cut]], rule: str, tie: float) -> int:
    """How many extra classes: the mean of the two numbers that the two measures prefer.

    Each prefers the largest number that is best on average over the splits. An accuracy that is
    lower than the best by at most ``tie`` counts as the best. The mean is rounded up.
    """
    by_silhouette = _last_best({k: _mean([c.silhouette for c in v]) for k, v in curves.items()}, 0)
    accuracies = {k: _mean([c.accuracy for c in v]) for k, v in curves.items()}
    if rule == SILHOUETTE or all(math.isnan(value) for value in accuracies.values()):
        return by_silhouette
    by_accuracy = _last_best(accuracies, tie)
    return by_accuracy if rule == ACCURACY else math.ceil((by_silhouette + by_accuracy) / 2)


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _last_best(curve: dict[int, float], tie: float) -> int:
    defined = {k: value for k, value in curve.items() if not math.isnan(value)}
    best = max(defined.values(), default=0.0)
    return max((k for k, value in defined.items() if value >= best - tie), default=0)


def curve(curves: dict[int, list[Cut]]) -> dict[int, float]:
    """The mean of the measures for each number of extra classes."""
    both = {k: [(c.silhouette + c.accuracy) / 2 for c in v] for k, v in curves.items()}
    return {k: _mean(values) for k, values in both.items()}


def n_filled(assignment: Array, least_ratio: float) -> int:
    """Clusters that hold at least this share of what the largest one holds, and no empty one.

    >>> n_filled(np.array([0] * 50 + [1] * 60 + [2]), 0.1)
    2
    """
    sizes = np.bincount(assignment)
    return int((sizes >= max(1, least_ratio * sizes.max())).sum())
