"""The terms of CILF's objective, each a pure function of embeddings, labels and prototypes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core.distances import squared_distances
from cilf.nn.prototypes import class_means


def prototype_logits(z: Tensor, prototypes: Tensor, alpha: float) -> Tensor:
    """Log-odds of each class: -alpha times the squared distance to its prototype."""
    return -alpha * squared_distances(z, prototypes)


def prototype_cross_entropy(z: Tensor, y: Tensor, prototypes: Tensor, alpha: float) -> Tensor:
    """L_intra: cross entropy of the softmax over negative distances to the prototypes."""
    return F.cross_entropy(prototype_logits(z, prototypes, alpha), y)


def triplet_loss(
    z: Tensor,
    y: Tensor,
    margin: float,
    generator: torch.Generator,
    *,
    n_negatives: int | None = None,
) -> Tensor:
    """L_inter: the triplet loss with squared distances.

    It is the mean over anchors of [margin + d(anchor, positive) - d(anchor, negative)]_+. The
    positive is a random instance of the same class. One random instance is drawn from each of
    ``n_negatives`` other classes (None: all), and the nearest is the negative. Anchors that are
    alone in their class are left out.
    """
    positive, negatives, usable = draw_triplets(y, generator, n_negatives)
    if not bool(usable.any()):
        return z.sum() * 0.0
    distances = squared_distances(z, z)
    to_positive = distances.gather(1, positive[:, None])[:, 0]
    to_negatives = distances.gather(1, negatives.clamp_min(0))
    to_nearest = to_negatives.masked_fill(negatives < 0, torch.inf).amin(1)
    return F.relu(margin + to_positive - to_nearest)[usable].mean()


def draw_triplets(
    y: Tensor, generator: torch.Generator, n_negatives: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The positive (n,), the negatives (n, classes; -1: none) and the usability (n,) of anchors.

    An anchor has a negative from at most ``n_negatives`` other classes.
    """
    n = len(y)
    order = torch.argsort(y, stable=True)
    classes, own, counts = torch.unique(y, return_inverse=True, return_counts=True)
    starts = counts.cumsum(0) - counts
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n, device=y.device) - starts[own[order]]
    random = torch.rand(n, len(classes) + 1, generator=generator).to(y.device)

    other = (random[:, 0] * (counts[own] - 1)).long()
    other = torch.where(other >= rank, other + 1, other).minimum(counts[own] - 1)
    positive = order[starts[own] + other]
    negatives = order[starts + (random[:, 1:] * counts).long()]
    negatives.scatter_(1, own[:, None], -1)
    if n_negatives is not None and n_negatives < len(classes) - 1:
        chance = torch.rand(negatives.shape, generator=generator).to(y.device)
        left_out = chance.scatter_(1, own[:, None], 2.0).argsort(1)[:, n_negatives:]
        negatives.scatter_(1, left_out, -1)
    return positive, negatives, (counts[own] > 1) & (len(classes) > 1)


def distillation(
    z_new: Tensor, z_old: Tensor, new_prototypes: Tensor, old_prototypes: Tensor, alpha: float
) -> Tensor:
    """Cross entropy between the old and the new class probabilities over the old classes.

    It is zero if there are no instances.
    """
    if len(z_new) == 0:
        return z_new.sum()
    target = F.softmax(prototype_logits(z_old, old_prototypes, alpha), dim=1)
    logits = prototype_logits(z_new, new_prototypes[: len(old_prototypes)], alpha)
    return F.cross_entropy(logits, target)


def prototype_drift(z: Tensor, y: Tensor, old_prototypes: Tensor) -> Tensor:
    """R: squared distance of the batch mean of each known class from its old prototype.

    It is the mean over the known classes in the batch. Labels from ``len(old_prototypes)`` on are
    novel classes and do not count.
    """
    known = y < len(old_prototypes)
    if not bool(known.any()):
        return z.sum() * 0.0
    means, counts = class_means(z[known], y[known], len(old_prototypes))
    present = counts > 0
    return (means[present] - old_prototypes[present]).square().sum(1).mean()
