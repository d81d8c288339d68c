"""Known or novel: a score, and a threshold that few known instances exceed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters, fill_empty
from cilf.core.distances import squared_distances

NEAREST_CENTRE = 0.0  # the threshold at which the nearest of all centres decides


class Decision(NamedTuple):
    """The known class or the novel cluster of each instance."""

    label: Tensor  # nearest known class
    cluster: Tensor  # novel cluster, -1 for known instances


def decide(points: Tensor, clusters: Clusters, threshold: float) -> Decision:
    """Assign instances above the threshold to novel centres, of which none stays empty."""
    n_known, distances = clusters.n_known, squared_distances(points, clusters.centres).sqrt()
    score, label = _score_novelty(distances, n_known), distances[:, :n_known].argmin(1)
    if len(clusters.novel) == 0:
        return Decision(label, torch.full_like(label, -1))
    nearest_novel = n_known + distances[:, n_known:].argmin(1)
    assignment = torch.where(score > threshold, nearest_novel, label)
    assignment = fill_empty(assignment, distances, n_known)
    return Decision(label, torch.where(assignment < n_known, -1, assignment - n_known))


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


def novelty_threshold(held_out: Tensor, false_novel: float, strict: bool) -> float:
    """The novelty above which an instance is novel.

    A fresh known instance lies above it with probability ``false_novel``: it is equally likely to
    take any place among the ``held_out`` novelties of known instances. Where known and novel
    classes overlap, such a threshold would miss most novel instances. Unless ``strict``, an
    instance nearer to a novel centre than to any known one is novel in any case.

    >>> import torch
    >>> novelty_threshold(torch.arange(-99.0, 1.0), 0.05, strict=False)
    -4.0
    >>> novelty_threshold(torch.arange(1.0, 101.0), 0.05, strict=False)
    0.0
    """
    if len(held_out) == 0:
        return NEAREST_CENTRE
    n_above = int(false_novel * (len(held_out) + 1) + 1e-9)
    place = min(max(n_above, 1), len(held_out))
    allowed = float(held_out.sort(descending=True).values[place - 1])
    return allowed if strict else min(allowed, NEAREST_CENTRE)
