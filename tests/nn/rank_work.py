"""What tests have the ranks of a group do. Their processes import this file."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import progress
from cilf.core.notices import warn_once
from cilf.errors import BadConfig
from cilf.learners.cilf import losses
from cilf.nn import training
from cilf.nn.network import Network, make_network
from cilf.nn.prototypes import anneal, class_means
from cilf.nn.ranks import current_group

CPU = torch.device("cpu")
N, N_CLASSES = 61, 3  # parts of unequal size
LABELS = torch.arange(N) % N_CLASSES


def instances(*shape: int) -> Tensor:
    return torch.randn(N, *shape, generator=torch.Generator().manual_seed(1)) + 3


def describe(epochs: list[training.Epoch], network: Network) -> dict[str, Any]:
    """The loss curve, the embeddings of the last epoch, and the network."""
    state = {name: value.double().numpy() for name, value in network.state_dict().items()}
    return {
        "loss": [epoch.loss for epoch in epochs],
        "z": epochs[-1].z.numpy(),
        "classes": [type(layer).__name__ for layer in network.modules()],
        **state,
    }


def train_prototypes() -> dict[str, Any]:
    """Algorithm 1 on images: prototypes, triplets and hard negatives, all within a batch."""
    X = instances(1, 8, 8)
    network = make_network(
        "convnet", (8, 8), embedding_size=4, width=4, seed=0, device=CPU
    )  # fmt: skip
    network.standardise(X)
    prototypes, _ = class_means(network.eval()(X).detach(), LABELS, N_CLASSES)
    generator = torch.Generator().manual_seed(0)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        y = LABELS[rows]
        triplets = losses.triplet_loss(z, y, 1.0, generator, n_negatives=None, n_classes=N_CLASSES)
        neighbours = losses.neighbour_cross_entropy(z, y, 0.3)
        return losses.prototype_cross_entropy(z, y, prototypes, 0.3) + triplets + neighbours

    done = []
    batches = training.shuffle_batches(N, 16, generator, CPU)
    settings = training.Settings(4, 0.02, clip=1.0, augmentation="shift")
    for epoch in training.epochs(network, X, batches, objective, settings, seed=0, purpose="fit"):
        means, counts = class_means(epoch.z, LABELS[epoch.rows], N_CLASSES)
        prototypes = anneal(prototypes, means, counts, 0.5)
        done.append(epoch)
    return describe(done, network)


def train_unusual() -> dict[str, Any]:
    """Weights that only the objective uses, weights that nothing uses, a batch of one row."""

    def factory(shape: tuple[int, ...]) -> nn.Module:
        norms = nn.BatchNorm1d(8, affine=False), nn.BatchNorm1d(8, momentum=None)
        return nn.Sequential(nn.Linear(5, 8), norms[0], nn.ReLU(), norms[1])

    network = make_network(factory, (5,), embedding_size=4, width=None, seed=0, device=CPU)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network.classifier = nn.Linear(4, N_CLASSES)
        network.idle = nn.Linear(4, 4)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        return F.cross_entropy(network.get_submodule("classifier")(F.relu(z)), LABELS[rows])

    batches = [torch.arange(30), torch.tensor([31]), torch.arange(32, N)]
    done = training.epochs(
        network, instances(5), lambda _: batches, objective, training.Settings(3, 0.05),
        seed=0, purpose="fit", pull=lambda step: network.head.bias.data.mul_(1 - 0.1 * step),
    )  # fmt: skip
    return describe(list(done), network)


def train_with_dropout() -> dict[str, Any]:
    """A network that drops other units in each rank."""
    network = make_network(
        lambda shape: nn.Dropout(0.5), (5,), embedding_size=2, width=None, seed=0, device=CPU
    )
    X = torch.ones(N, 5)
    done = training.epochs(
        network, X, lambda _: [torch.arange(60)], lambda z, rows: z.square().mean(),
        training.Settings(1, 0.0), seed=0, purpose="fit",
    )  # fmt: skip
    return describe(list(done), network)


WORKS = {
    "prototypes": train_prototypes,
    "unusual": train_unusual,
    "dropout": train_with_dropout,
    "dropout again": train_with_dropout,
}


def train_all() -> dict[str, Any]:
    rank = current_group().rank
    progress.report(f"rank {rank}", 1, 1)
    warn_once(f"a notice of rank {rank}")
    return {name: work() for name, work in WORKS.items()} | {"rank": rank}


def lose_a_rank() -> None:
    """Train until the second rank is killed, as the system kills what takes too much memory."""
    for number in range(100):
        train_unusual()
        if number == 1 and current_group().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    if current_group().rank == 1:
        raise BadConfig("rate is 7: give less.")
    train_unusual()  # waits for the other one


def fail() -> None:
    raise ZeroDivisionError("of the user")
