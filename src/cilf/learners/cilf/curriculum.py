"""Curriculum: which instances of a window are easy, and how many of them a batch may draw from."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core.distances import squared_distances
from cilf.nn.losses import prototype_logits


def confusion_weights(z: Tensor, prototypes: Tensor, alpha: float, gamma: float) -> Tensor:
    """w = (u - threshold)^2 with u = -log of the largest class probability.

    The threshold lies at share ``gamma`` between the smallest and the largest u, so sure-known
    and sure-novel instances weigh much and confusing ones little.
    """
    u = -F.log_softmax(prototype_logits(z, prototypes, alpha), dim=1).amax(1)
    threshold = (1 - gamma) * u.min() + gamma * u.max()
    return (u - threshold).square()


def certainty(z: Tensor, centres: Tensor) -> Tensor:
    """How much nearer the nearest centre is than the second, from 0 (a tie) to 1."""
    if len(centres) < 2:
        return torch.ones(len(z), device=z.device)
    nearest = squared_distances(z, centres).topk(2, dim=1, largest=False).values.sqrt()  # (n, 2)
    return 1 - nearest[:, 0] / nearest[:, 1].clamp_min(1e-12)


def easiest_first(easiness: Tensor) -> Tensor:
    """Rank of each instance as a share of the window: 0 the easiest, below 1 the hardest."""
    ranks = torch.empty_like(easiness)
    order = easiness.argsort(descending=True, stable=True)
    ranks[order] = torch.arange(len(easiness), device=easiness.device, dtype=easiness.dtype)
    return ranks / len(easiness)


def easiest_of_each(easiness: Tensor, assignment: Tensor) -> Tensor:
    """The same rank, taken inside each cluster, so that every cluster shows its easy part."""
    ranks = torch.empty_like(easiness)
    for cluster in torch.unique(assignment):
        members = assignment == cluster
        ranks[members] = easiest_first(easiness[members])
    return ranks


def pace(step: int, start: float, growth: float, every: int) -> float:
    """h(l) = min(start * growth^floor(l / every), 1): the share of the window in play.

    >>> [round(pace(step, 0.2, 3, 10), 2) for step in (0, 9, 10, 20)]
    [0.2, 0.2, 0.6, 1.0]
    """
    try:
        return float(min(start * growth ** (step // every), 1.0))
    except OverflowError:  # no float is that large: all of the window, long since
        return 1.0
