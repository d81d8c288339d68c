"""A network as a classifier. Its head gives one logit for each class and grows with the classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core.random import isolated_torch
from cilf.core.types import Floats
from cilf.nn import training
from cilf.nn.network import Network, to_numpy


def grow_head(network: Network, n_classes: int, seed: int) -> None:
    """Give the head an output for each class; old outputs keep their weights."""
    network.head = grow_layer(network.head, n_classes, seed)


def grow_layer(old: nn.Linear, n_outputs: int, seed: int) -> nn.Linear:
    """A layer with more outputs; old outputs keep their weights."""
    if n_outputs == old.out_features:
        return old
    with isolated_torch(seed, "head", n_outputs):
        new = nn.Linear(old.in_features, n_outputs).to(old.weight.device)
    with torch.no_grad():
        new.weight[: old.out_features] = old.weight
        new.bias[: old.out_features] = old.bias
    return new


def train_classifier(
    network: Network,
    x: Tensor,
    labels: Tensor,
    settings: training.Settings,
    *,
    batch_size: int,
    generator: torch.Generator,
    seed: int,
    purpose: str,
    pull: training.Pull | None = None,
) -> None:
    """Minimise the cross entropy on labelled instances; ``pull`` moves the weights after a step."""

    def objective(logits: Tensor, rows: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels[rows])

    batches = training.shuffle_batches(len(x), batch_size, generator, network.device)
    for _ in training.epochs(
        network, x, batches, objective, settings, seed=seed, purpose=purpose, pull=pull
    ):
        pass


def softmax_uncertainty(logits: Tensor) -> Floats:
    """1 - the largest softmax probability.

    >>> softmax_uncertainty(torch.tensor([[0.0, 0.0], [9.0, 0.0]])).round(3).tolist()
    [0.5, 0.0]
    """
    return to_numpy(1 - F.softmax(logits.double(), dim=1).amax(1))
