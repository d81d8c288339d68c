"""Algorithm 3 of the paper: learn labelled instances beside the memory, without forgetting."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from cilf.learners.cilf import losses
from cilf.learners.cilf.embedding import (
    Embedding,
    Labelled,
    Loss,
    choose_prototypes,
    locate_classes,
)
from cilf.nn import training
from cilf.nn.network import embed
from cilf.nn.prototypes import anneal, class_means
from cilf.nn.training import Training
from cilf.nn.views import compute_views


def update_embedding(
    old: Embedding,
    labelled: Labelled,
    n_new: int,
    n_classes: int,
    *,
    loss: Loss,
    optimiser: Training,
    epochs: int,
    seed: int,
) -> Embedding:
    """Train a copy of the network on new instances, which come first, and on the memory."""
    x, y = labelled
    generator = torch.Generator().manual_seed(seed)
    network = copy.deepcopy(old.network)
    old_z = embed(network, x)
    prototypes = _add_classes(old.prototypes, class_means(old_z, y, n_classes)[0])

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        learning = loss.measure(z, y[rows], prototypes, generator, old.prototypes)
        memory = rows >= n_new
        forgetting = losses.distillation(
            z[memory], old_z[rows[memory]], prototypes, old.prototypes, loss.alpha
        )
        return learning + loss.distill * forgetting

    batches = training.shuffle_batches(len(x), optimiser.batch_size, generator, network.device)
    settings = optimiser.settings(epochs, optimiser.update_learning_rate)
    for epoch in training.epochs(
        network, x, batches, objective, settings, seed=seed, purpose="update"
    ):
        prototypes = loss.anneal(prototypes, epoch, y)
    centres = _move_centres(old.centres, compute_views(network, old.patches, x), y, n_classes)
    return Embedding(network, old.patches, choose_prototypes(centres, prototypes, loss))


def _move_centres(
    old: list[Tensor], views: list[Tensor], y: Tensor, n_classes: int
) -> list[Tensor]:
    """The new centre of each class in each view. A class without instances keeps its centre."""
    counts = torch.bincount(y, minlength=n_classes)
    pairs = zip(old, locate_classes(views, y, n_classes), strict=True)
    return [anneal(_add_classes(before, now), now, counts, 0.0) for before, now in pairs]


def _add_classes(old: Tensor, new: Tensor) -> Tensor:
    """The old centres, and the new ones of classes that had none."""
    return torch.cat([old, new[len(old) :]])
