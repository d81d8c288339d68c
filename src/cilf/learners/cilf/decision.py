"""Known or novel: a score, and a threshold that few known instances exceed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters, fill_empty
from cilf.core.distances import squared_distances

MIN_ABOVE = 2.0  # held-out instances that must lie above a threshold for it to mean anything
NEAREST_CENTRE = 0.0  # the threshold at which the nearest of all centres decides


class Decision(NamedTuple):
    """The known class or the novel cluster of each instance."""

    label: Tensor  # nearest known class
    cluster: Tensor  # novel cluster, -1 for known instances


class Scores(NamedTuple):
    """Novelty of the instances of a window, and of the held-out instances of known classes."""

    window: Tensor  # (n,)
    held_out: Tensor  # (h,)


def decide(points: Tensor, clusters: Clusters, threshold: float) -> Decision:
    """Assign instances above the threshold to the nearest novel centre."""
    is_novel = measure_novelty(points, clusters) > threshold
    distances = squared_distances(points, clusters.centres)
    return assign(distances, clusters.n_known, is_novel, nearest_novel(distances, clusters.n_known))


def assign(distances: Tensor, n_known: int, is_novel: Tensor, cluster: Tensor) -> Decision:
    """The decision that novel instances are in these clusters, of which none stays empty.

    ``distances`` are those to all centres, the known ones first.
    """
    label = distances[:, :n_known].argmin(1)
    if distances.shape[1] == n_known:
        return Decision(label, torch.full_like(label, -1))
    assignment = fill_empty(torch.where(is_novel, n_known + cluster, label), distances, n_known)
    return Decision(label, torch.where(assignment < n_known, -1, assignment - n_known))


def nearest_novel(distances: Tensor, n_known: int) -> Tensor:
    """The cluster of the nearest novel centre; 0 if there is none."""
    if distances.shape[1] == n_known:
        return torch.zeros(len(distances), dtype=torch.int64, device=distances.device)
    return distances[:, n_known:].argmin(1)


def measure_novelty(points: Tensor, clusters: Clusters) -> Tensor:
    """Distance to the nearest known centre minus distance to the nearest novel one.

    Without a novel centre it is the distance to the nearest known one.
    """
    return _score_novelty(squared_distances(points, clusters.centres).sqrt(), clusters.n_known)


def average_novelty(points: Mapping[int, Tensor], clusterings: Mapping[int, Clusters]) -> Tensor:
    """Mean of the novelty in the clusterings of one novel centre and more, by their number.

    It does not depend on the number of novel classes that is found, or given.
    """
    scores = [measure_novelty(points[k], clusters) for k, clusters in clusterings.items() if k]
    return torch.stack(scores).mean(0)


def _score_novelty(distances: Tensor, n_known: int) -> Tensor:
    nearest_known = distances[:, :n_known].amin(1)
    if distances.shape[1] == n_known:
        return nearest_known
    return nearest_known - distances[:, n_known:].amin(1)


def novelty_threshold(
    held_out: Tensor, false_novel: float, strict: bool, weights: Tensor | None = None
) -> float:
    """The novelty above which an instance is novel.

    A fresh known instance lies above it with probability ``false_novel``: it is equally likely to
    take any place among the ``held_out`` novelties of known instances. ``weights`` give the known
    classes the proportions that they have in the window. Where known and novel classes overlap,
    such a threshold would miss most novel instances. Unless ``strict``, an instance nearer to a
    novel centre than to any known one is novel in any case, and this is all that counts if too
    few instances are held out.

    >>> import torch
    >>> novelty_threshold(torch.arange(-99.0, 1.0), 0.05, strict=False)
    -4.0
    >>> novelty_threshold(torch.arange(1.0, 101.0), 0.05, strict=False)
    0.0
    """
    if weights is None:
        weights = torch.ones_like(held_out)
    total = float(weights.sum())
    if total <= 0 or (not strict and false_novel * count_effective(weights) < MIN_ABOVE):
        return NEAREST_CENTRE
    ordered, rows = held_out.sort(descending=True)
    above = weights[rows].double().cumsum(0) / (total * (1 + 1 / len(held_out)))
    place = int((above <= false_novel + 1e-9).sum())
    allowed = float(ordered[min(max(place, 1), len(held_out)) - 1])
    return allowed if strict else min(allowed, NEAREST_CENTRE)


def count_effective(weights: Tensor) -> float:
    """The number of equally weighted instances that estimate a share as well as these do.

    >>> import torch
    >>> count_effective(torch.tensor([2.0, 2.0, 0.0]))
    2.0
    """
    return float(weights.sum().square() / weights.square().sum())


def weigh_by_class(labels: Tensor, sizes: Tensor) -> Tensor:
    """The weights with which instances have the class sizes of a window.

    >>> import torch
    >>> weigh_by_class(torch.tensor([0, 0, 1]), torch.tensor([10, 40]))
    tensor([ 5.,  5., 40.])
    """
    counts = torch.bincount(labels, minlength=len(sizes))
    return sizes[labels] / counts[labels]
