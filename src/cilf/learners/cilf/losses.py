"""The terms of CILF's objective, each a pure function of embeddings, labels and prototypes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core.distances import squared_distances
from cilf.nn.network import is_asynchronous
from cilf.nn.prototypes import class_means, count_instances

NEVER = -1e9  # log-odds of what is never picked; an infinity would have no gradient


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
    n_classes: int | None = None,
) -> Tensor:
    """L_inter: the triplet loss with squared distances.

    It is the mean over anchors of [margin + d(anchor, positive) - d(anchor, negative)]_+. The
    positive is a random instance of the same class. One random instance is drawn from each of
    ``n_negatives`` other classes (None: all), and the nearest is the negative. Anchors that are
    alone in their class are left out. ``n_classes`` is the number of all classes, in the batch or
    not; if it is None, the classes in the batch are counted.
    """
    if n_classes is not None and not is_asynchronous(y.device):
        n_classes = None  # fewer columns, and counting costs no time
    positive, negatives, usable = draw_triplets(y, generator, n_negatives, n_classes)
    distances = squared_distances(z, z)
    to_positive = distances.gather(1, positive[:, None])[:, 0]
    to_negatives = distances.gather(1, negatives.clamp_min(0))
    to_nearest = to_negatives.masked_fill(negatives < 0, torch.inf).amin(1)
    return masked_mean(F.relu(margin + to_positive - to_nearest), usable)


def neighbour_cross_entropy(z: Tensor, y: Tensor, alpha: float) -> Tensor:
    """L_inter without a margin: the loss of neighbourhood components analysis.

    Each anchor picks another instance of the batch with the probabilities softmax(-alpha * squared
    distance). The loss is the negative logarithm of the probability of its own class, averaged
    over the anchors. Anchors that are alone in their class are left out. Unlike the triplet loss
    it does not fall when all instances draw together.
    """
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_odds = (-alpha * squared_distances(z, z)).masked_fill(itself, NEVER)
    same = (y[:, None] == y) & ~itself
    own = log_odds.masked_fill(~same, NEVER).logsumexp(1)
    return masked_mean(log_odds.logsumexp(1) - own, same.any(1))


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of the values where the mask is true; 0 if it is true nowhere.

    On an asynchronous device values are not selected, since the host would wait for their number.

    >>> masked_mean(torch.tensor([1.0, 5.0, 3.0]), torch.tensor([True, False, True]))
    tensor(2.)
    """
    if is_asynchronous(values.device):
        return torch.where(mask, values, 0.0).sum() / mask.sum().clamp_min(1)
    return values[mask].mean() if bool(mask.any()) else values.sum() * 0.0


def draw_triplets(
    y: Tensor,
    generator: torch.Generator,
    n_negatives: int | None = None,
    n_classes: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The positive (n,), the negatives (n, classes; -1: none) and the usability (n,) of anchors.

    An anchor has a negative from at most ``n_negatives`` other classes. The columns of the
    negatives are the classes in the batch, or ``n_classes`` classes, of which some may be absent.
    """
    n = len(y)
    own, counts = _number_classes(y, n_classes)
    order = torch.argsort(y, stable=True)
    starts = counts.cumsum(0) - counts
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n, device=y.device) - starts[own[order]]
    random = _draw(n, len(counts) + 1, generator).to(y.device)

    other = (random[:, 0] * (counts[own] - 1)).long()
    other = torch.where(other >= rank, other + 1, other).minimum(counts[own] - 1)
    positive = order[starts[own] + other]
    negatives = order[(starts + (random[:, 1:] * counts).long()).clamp_max(n - 1)]
    not_negative = (counts == 0).expand_as(negatives).scatter(1, own[:, None], True)
    negatives.masked_fill_(not_negative, -1)
    if n_negatives is not None and n_negatives < len(counts) - 1:
        chance = _draw(n, len(counts), generator).to(y.device).masked_fill_(not_negative, 2.0)
        negatives.scatter_(1, chance.argsort(1)[:, n_negatives:], -1)
    return positive, negatives, (counts[own] > 1) & (counts[own] < n)


def _number_classes(y: Tensor, n_classes: int | None) -> tuple[Tensor, Tensor]:
    """The position of each instance's class, and the number of instances at each position."""
    if n_classes is not None:
        return y, count_instances(y, n_classes)
    _, own, counts = torch.unique(y, return_inverse=True, return_counts=True)
    return own, counts


def _draw(n: int, m: int, generator: torch.Generator) -> Tensor:
    return torch.rand(n, m, generator=generator, device=generator.device)


def distillation(
    z_new: Tensor,
    z_old: Tensor,
    new_prototypes: Tensor,
    old_prototypes: Tensor,
    alpha: float,
    mask: Tensor | None = None,
) -> Tensor:
    """Cross entropy between the old and the new class probabilities over the old classes.

    It is the mean over the instances where the mask is true (None: all); 0 if there are none.
    """
    if mask is not None and not is_asynchronous(mask.device):
        z_new, z_old, mask = z_new[mask], z_old[mask], None
    if len(z_new) == 0:
        return z_new.sum()
    target = F.softmax(prototype_logits(z_old, old_prototypes, alpha), dim=1)
    logits = prototype_logits(z_new, new_prototypes[: len(old_prototypes)], alpha)
    if mask is None:
        return F.cross_entropy(logits, target)
    return masked_mean(F.cross_entropy(logits, target, reduction="none"), mask)


def prototype_drift(z: Tensor, y: Tensor, old_prototypes: Tensor) -> Tensor:
    """R: squared distance of the batch mean of each known class from its old prototype.

    It is the mean over the known classes in the batch. Labels from ``len(old_prototypes)`` on are
    novel classes and do not count.
    """
    n_known = len(old_prototypes)
    means, counts = class_means(z, y.clamp_max(n_known), n_known + 1)  # the last one: novel
    drift = (means[:n_known] - old_prototypes).square().sum(1)
    return masked_mean(drift, counts[:n_known] > 0)
