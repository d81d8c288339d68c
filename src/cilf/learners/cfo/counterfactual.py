"""Counterfactual images: close to real images, and of none of the known classes.

A classifier of K classes has an implicit logit of 0 for "none of them", so that its softmax over
K + 1 outputs gives the probability that an image is of no known class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import progress, validation
from cilf.core.parameters import Part
from cilf.learners.cfo.gan import GAN, normalize_cells

Classifier = Callable[[Tensor], Tensor]
"""Raw images -> logits of the known classes."""


def pad_none(logits: Tensor) -> Tensor:
    """(n, K) -> (n, K + 1): the logit of "none of them" is 0."""
    return F.pad(logits, (0, 1))


def surprise_of_none(logits: Tensor) -> Tensor:
    """-log p("none of them"), of each instance."""
    return torch.logsumexp(pad_none(logits), dim=1)


def one_against_rest(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of softplus(-logit) for the own class and softplus(logit) for every other class.

    Unlike cross entropy among K classes it fixes the zero of the logits, which the class "none of
    them" needs.
    """
    sign = 1 - 2 * F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return F.softplus(sign * logits).mean()


def open_scores(logits: Tensor) -> Tensor:
    """p("none of them") - the largest p of a known class: from -1 (known) to 1 (novel)."""
    p = F.softmax(pad_none(logits.double()), dim=1)
    return p[:, -1] - p[:, :-1].amax(1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Counterfactuals(Part):
    """The descent from known images to images of no known class.

    Parameters
    ----------
    batches : int, default=50
        Largest number of batches of images that the descent starts from. Each image serves once.
    steps : int, default=100
        Number of steps of the descent.
    speed : float, default=0.1
        Length of a step, relative to the gradient.
    distance_weight : float, default=1.0
        Weight of the squared distance from the start.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "batches": validation.whole(1),
        "steps": validation.whole(0),
        **dict.fromkeys(["speed", "distance_weight"], validation.in_range(0.0)),
    }

    batches: int = 50
    steps: int = 100
    speed: float = 0.1
    distance_weight: float = 1.0

    def generate(
        self, gan: GAN, classifier: Classifier, batches: Sequence[Tensor], *, purpose: str
    ) -> Tensor:
        """Counterfactuals of the first batches, as raw images of the same type."""
        found: list[Tensor] = []
        for x in batches[: self.batches]:
            images = self.descend(gan, classifier, x)
            found.append(images if x.is_floating_point() else images.round().to(x.dtype))
            progress.report(purpose, len(found), min(self.batches, len(batches)))
        return torch.cat(found)

    def descend(self, gan: GAN, classifier: Classifier, x: Tensor) -> Tensor:
        """Raw images near these that the classifier takes for none of its classes.

        The descent minimises -log p("none of them") plus the weighted squared distance from the
        start, over the cells of each image. After each step the cells are put back on the sphere.
        The networks are in evaluation mode.
        """
        with torch.no_grad():
            start = gan.encode(x)
        cells = start
        for _ in range(self.steps):
            cells = cells.detach().requires_grad_()
            with torch.enable_grad():
                distance = (cells - start).square().flatten(1).sum(1)
                surprise = surprise_of_none(classifier(gan.decode(cells)))
                loss = surprise + self.distance_weight * distance
                (gradient,) = torch.autograd.grad(loss.sum(), cells)
            cells = normalize_cells(cells - self.speed * gradient)
        with torch.no_grad():
            return gan.decode(cells.detach())
