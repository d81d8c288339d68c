"""A network as a classifier: its head gives one logit for each class, and grows with them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core.random import isolated_torch
from cilf.core.types import Floats
from cilf.nn import training
from cilf.nn.network import Network, to_numpy

Penalty = Callable[[], Tensor]
"""Of the weights as they are now."""


def grow_head(network: Network, n_classes: int, seed: int) -> None:
    """Give the head an output for each class; those that are there keep their weights."""
    network.head = grown(network.head, n_classes, seed)


def grown(old: nn.Linear, n_outputs: int, seed: int) -> nn.Linear:
    """A layer with more outputs; those that are there keep their weights."""
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
    draws: torch.Generator,
    seed: int,
    purpose: str,
    penalty: Penalty | None = None,
    pull: training.Pull | None = None,
) -> None:
    """Cross entropy on labelled instances; a penalty or a pull on the weights if there is one."""

    def objective(logits: Tensor, rows: Tensor) -> Tensor:
        loss = F.cross_entropy(logits, labels[rows])
        return loss if penalty is None else loss + penalty()

    batches = training.shuffled(len(x), batch_size, draws, network.device)
    for _ in training.epochs(
        network, x, batches, objective, settings, seed=seed, purpose=purpose, pull=pull
    ):
        pass


def unsureness(logits: Tensor) -> Floats:
    """1 - the largest softmax probability.

    >>> unsureness(torch.tensor([[0.0, 0.0], [9.0, 0.0]])).round(3).tolist()
    [0.5, 0.0]
    """
    return to_numpy(1 - F.softmax(logits.double(), dim=1).amax(1))
