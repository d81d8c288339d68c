"""Counterfactual images: as close to real ones as can be, and of none of the known classes.

A classifier of K classes has an implicit logit of 0 for "none of them", so that its softmax over
K + 1 outputs says how likely an image is of no known class.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.learners.cfo.gan import GAN, on_sphere


def with_none(logits: Tensor) -> Tensor:
    """(n, K) -> (n, K + 1): the logit of "none of them" is 0."""
    return F.pad(logits, (0, 1))


def surprise_of_none(logits: Tensor) -> Tensor:
    """-log p("none of them"), of each instance."""
    return torch.logsumexp(with_none(logits), dim=1)


def one_against_rest(logits: Tensor, labels: Tensor) -> Tensor:
    """Each class told from all others: softplus(-logit) for its own, softplus(logit) for others.

    Unlike cross entropy among K classes it fixes where zero is, which "none of them" needs.
    """
    sign = 1 - 2 * F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return F.softplus(sign * logits).mean()


def open_scores(logits: Tensor) -> Tensor:
    """p("none of them") - the largest p of a known class: from -1 (known) to 1 (novel)."""
    p = F.softmax(with_none(logits.double()), dim=1)
    return p[:, -1] - p[:, :-1].amax(1)


def counterfactuals(
    gan: GAN,
    classifier: Callable[[Tensor], Tensor],
    x: Tensor,
    *,
    steps: int,
    speed: float,
    distance_weight: float,
) -> Tensor:
    """Raw images that the classifier takes for none of its classes, near these.

    Descends, from the cells of each image, on -log p("none of them") plus the weighted squared
    distance from where it started; after each step the cells are put back on the sphere. The
    networks are in evaluation mode.
    """
    with torch.no_grad():
        start = gan.encoded(x)
    cells = start
    for _ in range(steps):
        cells = cells.detach().requires_grad_()
        with torch.enable_grad():
            distance = (cells - start).square().flatten(1).sum(1)
            loss = surprise_of_none(classifier(gan.decoded(cells))) + distance_weight * distance
            (gradient,) = torch.autograd.grad(loss.sum(), cells)
        cells = on_sphere(cells - speed * gradient)
    with torch.no_grad():
        return gan.decoded(cells.detach())
