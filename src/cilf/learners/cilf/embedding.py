"""Algorithm 1 of the paper: an embedding in which every class gathers around its prototype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from cilf.core import validation
from cilf.core.parameters import Part
from cilf.core.random import torch_generator
from cilf.errors import BadConfig
from cilf.learners.cilf import losses
from cilf.nn import training
from cilf.nn.network import Network, embed
from cilf.nn.patches import PatchDictionary
from cilf.nn.prototypes import anneal, class_means
from cilf.nn.training import Training
from cilf.nn.views import compute_views, learn_patches

BLOCK = 8192  # instances whose views are held at once
Views = Callable[[Tensor], list[Tensor]]  # of instances


@dataclass(frozen=True, kw_only=True, repr=False)
class Loss(Part):
    """The objective of all training: L_intra + lambda1 * L_inter + lambda2 * R.

    Parameters
    ----------
    alpha : float, default=0.3
        Sharpness of the class probabilities, softmax(-alpha * squared distance).
    margin : float or None, default=None
        Margin of the triplet loss L_inter. None takes a loss without a margin in its place, that
        of neighbourhood components analysis with the sharpness ``alpha``.
    negatives : int or None, default=4
        Number of other classes that each instance is compared with in the triplet loss. None
        compares it with all other classes of the batch.
    lambda1 : float, default=1.0
        Weight of L_inter.
    lambda2 : float, default=0.0
        Weight of R, which holds the prototypes of known classes in place.
    beta : float, default=0.8
        Share of a prototype that stays when it is annealed after an epoch.
    exact_prototypes : bool, default=True
        Whether prototypes end as exact class means instead of annealed ones.
    distill : float, default=1.0
        Weight of the distillation on the memory in an update.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["alpha", "lambda1", "lambda2", "distill"], validation.in_range(0.0)),
        "margin": validation.optional(validation.in_range(0.0)),
        "negatives": validation.optional(validation.whole(1)),
        "beta": validation.in_range(0.0, 1.0),
        "exact_prototypes": validation.flag,
    }

    alpha: float = 0.3
    margin: float | None = None
    negatives: int | None = 4
    lambda1: float = 1.0
    lambda2: float = 0.0
    beta: float = 0.8
    exact_prototypes: bool = True
    distill: float = 1.0

    def measure(
        self,
        z: Tensor,
        y: Tensor,
        prototypes: Tensor,
        generator: torch.Generator,
        old_prototypes: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch. R is added if it has a weight and there are old prototypes."""
        loss = losses.prototype_cross_entropy(z, y, prototypes, self.alpha)
        loss = loss + self.lambda1 * self._measure_inter(z, y, generator, len(prototypes))
        if old_prototypes is not None and self.lambda2 > 0:
            loss = loss + self.lambda2 * losses.prototype_drift(z, y, old_prototypes)
        return loss

    def _measure_inter(
        self, z: Tensor, y: Tensor, generator: torch.Generator, n_classes: int
    ) -> Tensor:
        if self.margin is None:
            return losses.neighbour_cross_entropy(z, y, self.alpha)
        return losses.triplet_loss(
            z, y, self.margin, generator, n_negatives=self.negatives, n_classes=n_classes
        )

    def anneal(self, prototypes: Tensor, epoch: training.Epoch, y: Tensor) -> Tensor:
        """The prototypes after an epoch."""
        means, counts = class_means(epoch.z, y[epoch.rows], len(prototypes))
        return anneal(prototypes, means, counts, self.beta)


class Labelled(NamedTuple):
    """Labelled instances on the device of the network."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Embedding:
    """A trained network, and the centre of each class in each view of it."""

    network: Network
    patches: PatchDictionary | None  # of images
    centres: list[Tensor]  # those in the embedding, the prototypes, come first

    @property
    def prototypes(self) -> Tensor:
        return self.centres[0]

    def views(self, x: Tensor) -> list[Tensor]:
        """Instances in each view."""
        return compute_views(self.network, self.patches, x)


def fit_embedding(
    network: Network,
    labelled: Labelled,
    *,
    loss: Loss,
    optimiser: Training,
    epochs: int,
    seed: int,
    even: bool = False,
) -> Embedding:
    """Train a network on the known classes; ``even`` draws as many instances of each class."""
    x, y = labelled
    generator = torch_generator(seed, "fit", device=network.device)
    network.standardise(x)
    patches = learn_patches(network.scale, x, torch_generator(seed, "inputs"))
    prototypes, _ = class_means(embed(network, x), y, int(y.max()) + 1)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        return loss.measure(z, y[rows], prototypes, generator)

    drawing = (optimiser.batch_size, generator, network.device)
    shuffle = training.shuffle_batches(len(x), *drawing)
    batches = training.even_batches(y, *drawing) if even else shuffle
    settings = optimiser.settings(epochs, optimiser.learning_rate)
    for epoch in training.epochs(
        network, x, batches, objective, settings, seed=seed, purpose="fit"
    ):
        prototypes = loss.anneal(prototypes, epoch, y)
    centres = locate_classes(partial(compute_views, network, patches), x, y, len(prototypes))
    return Embedding(network, patches, choose_prototypes(centres, prototypes, loss))


def locate_classes(views: Views, x: Tensor, y: Tensor, n_classes: int) -> list[Tensor]:
    """The centre of each class in each view; zero where it has no instance."""
    blocks = zip(torch.split(x, BLOCK), torch.split(y, BLOCK), strict=True)
    sums: list[Tensor] = []
    for block, labels in blocks:
        found = views(block)
        sums = sums or [view.new_zeros(n_classes, view.shape[1]) for view in found]
        for total, view in zip(sums, found, strict=True):
            total.index_add_(0, labels, view)
    counts = torch.bincount(y, minlength=n_classes).clamp_min(1)[:, None]
    return [total / counts.to(total) for total in sums]


def choose_prototypes(centres: list[Tensor], anneal: Tensor, loss: Loss) -> list[Tensor]:
    """The centres with the prototypes of the loss. Diverged training is refused."""
    centres = centres if loss.exact_prototypes else [anneal, *centres[1:]]
    if not all(bool(torch.isfinite(view).all()) for view in centres):
        raise BadConfig(
            "training diverged (the embedding is not finite): lower training.learning_rate or "
            "training.clip."
        )
    return centres


def move_centres(
    old: list[Tensor], views: Views, x: Tensor, y: Tensor, n_classes: int
) -> list[Tensor]:
    """The new centre of each class in each view. A class without instances keeps its centre."""
    counts = torch.bincount(y, minlength=n_classes)
    pairs = zip(old, locate_classes(views, x, y, n_classes), strict=True)
    return [anneal(add_classes(before, now), now, counts, 0.0) for before, now in pairs]


def add_classes(old: Tensor, new: Tensor) -> Tensor:
    """The old centres, and the new ones of classes that had none."""
    return torch.cat([old, new[len(old) :]])


def merge_centres(
    old: list[Tensor], sizes: Tensor, positions: Tensor, n_classes: int
) -> list[Tensor]:
    """The centres after classes got new positions; -1 leaves.

    Classes of one position have their mean, in which each counts by its size.
    """
    stays = positions >= 0
    to, weights = positions[stays], sizes[stays].to(old[0]).clamp_min(1)[:, None]
    totals = weights.new_zeros(n_classes, 1).index_add(0, to, weights)
    sums = [c.new_zeros(n_classes, c.shape[1]).index_add(0, to, c[stays] * weights) for c in old]
    return [each / totals for each in sums]
