"""Known or novel: a score, and where to cut it so that few known instances are called novel."""

from __future__ import annotations

from torch import Tensor

from cilf.learners.clustering import Clusters
from cilf.nn.losses import squared_distances

NEAREST_CENTRE = 0.0  # the cut at which the nearest of all centres decides


def novelty(points: Tensor, clusters: Clusters) -> Tensor:
    """How much nearer the nearest novel centre is than the nearest known one.

    With no novel centre, the distance to the nearest known one.
    """
    distances = squared_distances(points, clusters.centres).sqrt()
    nearest_known = distances[:, : clusters.n_known].amin(1)
    if len(clusters.free) == 0:
        return nearest_known
    return nearest_known - distances[:, clusters.n_known :].amin(1)


def cut(held_out: Tensor, false_novel: float, strict: bool) -> float:
    """The novelty above which an instance is novel.

    A fresh known instance lies above it with probability ``false_novel``, as the ``held_out``
    novelties of known instances tell: it is as likely to take any place among them. Where known
    and novel classes overlap that would miss most novel instances, so unless ``strict`` an
    instance nearer to a novel centre than to any known one is novel in any case.

    >>> import torch
    >>> cut(torch.arange(-99.0, 1.0), 0.05, strict=False)
    -4.0
    >>> cut(torch.arange(1.0, 101.0), 0.05, strict=False)
    0.0
    """
    if len(held_out) == 0:
        return NEAREST_CENTRE
    n_above = int(false_novel * (len(held_out) + 1) + 1e-9)
    place = min(max(n_above, 1), len(held_out))
    allowed = float(held_out.sort(descending=True).values[place - 1])
    return allowed if strict else min(allowed, NEAREST_CENTRE)
