"""Algorithm 3 of the paper: learn labelled instances beside the memory, without forgetting."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import Tensor

from cilf.learners.cilf import losses
from cilf.learners.cilf.embedding import (
    Embedding,
    Labelled,
    Loss,
    add_classes,
    choose_prototypes,
    move_centres,
)
from cilf.nn import training
from cilf.nn.network import embed
from cilf.nn.prototypes import class_means
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
    network = copy.deepcopy(old.network)
    generator = torch.Generator(network.device).manual_seed(seed)
    old_z = embed(network, x)
    prototypes = add_classes(old.prototypes, class_means(old_z, y, n_classes)[0])

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        learning = loss.measure(z, y[rows], prototypes, generator, old.prototypes)
        forgetting = losses.distillation(
            z, old_z[rows], prototypes, old.prototypes, loss.alpha, mask=rows >= n_new
        )
        return learning + loss.distill * forgetting

    batches = training.shuffle_batches(len(x), optimiser.batch_size, generator, network.device)
    settings = optimiser.settings(epochs, optimiser.update_learning_rate)
    for epoch in training.epochs(
        network, x, batches, objective, settings, seed=seed, purpose="update"
    ):
        prototypes = loss.anneal(prototypes, epoch, y)
    views = partial(compute_views, network, old.patches)
    centres = move_centres(old.centres, views, x, y, n_classes)
    return Embedding(network, old.patches, choose_prototypes(centres, prototypes, loss))
