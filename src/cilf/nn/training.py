"""The one training loop: a generator that yields after each epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from cilf.core import progress, validation
from cilf.core.parameters import Part
from cilf.core.random import isolated_torch, torch_generator
from cilf.errors import BadConfig
from cilf.nn.augment import AUGMENTATIONS, make_augmentation
from cilf.nn.network import Network
from cilf.nn.precision import AUTO, PRECISIONS, compute_in
from cilf.nn.ranks import Group, Step, current_group

Objective = Callable[[Tensor, Tensor], Tensor]
"""(embeddings of a batch, their row numbers) -> loss."""
Batches = Callable[[int], Iterable[Tensor]]
"""Epoch number (0, 1, ...) -> the row numbers of each batch."""
Pull = Callable[[float], None]
"""Moves the weights after a step of the optimiser, given how long such steps are."""

CONSTANT, COSINE = "constant", "cosine"
SCHEDULES = (CONSTANT, COSINE)


@dataclass(frozen=True)
class Settings:
    """The optimiser of one training; its values are checked where they are parameters."""

    epochs: int
    learning_rate: float
    momentum: float = 0.9
    weight_decay: float = 0.001
    clip: float | None = None  # largest norm of the gradient
    augmentation: str | None = None
    schedule: str = CONSTANT
    precision: str = AUTO

    def in_epoch(self, number: int) -> Settings:
        """The settings of one epoch, with the learning rate that the schedule gives it.

        >>> cosine = Settings(epochs=4, learning_rate=0.8, schedule="cosine")
        >>> [round(cosine.in_epoch(number).learning_rate, 3) for number in range(4)]
        [0.8, 0.683, 0.4, 0.117]
        """
        if self.schedule == CONSTANT:
            return self
        share = (1 + math.cos(math.pi * number / self.epochs)) / 2
        return replace(self, learning_rate=share * self.learning_rate)

    @property
    def step(self) -> float:
        """The total step of a gradient, with its repetition by momentum.

        >>> round(Settings(epochs=1, learning_rate=0.01, momentum=0.9).step, 6)
        0.1
        """
        return self.learning_rate / (1 - self.momentum)


@dataclass(frozen=True, kw_only=True, repr=False)
class Training(Part):
    """The optimiser and the batches of a learner's network: SGD with Nesterov momentum of 0.9.

    Parameters
    ----------
    batch_size : int, default=64
        Number of instances in a batch.
    learning_rate : float, default=0.01
        Learning rate of the initial training.
    update_learning_rate : float, default=0.01
        Learning rate of an update.
    weight_decay : float, default=0.001
        Weight of the penalty on the squared weights.
    clip : float or None, default=1.0
        Largest norm of a gradient. None does not clip gradients.
    augmentation : {"shift", "flip", "shift-flip"} or None, default="shift"
        Random change of each image in a batch. It does not apply to vectors.
    schedule : {"constant", "cosine"}, default="constant"
        Learning rate over the epochs of a training. "cosine" lowers it after each epoch along half
        a cosine, which would reach 0 after the last one.
    precision : {"auto", "float32", "bf16"}, default="auto"
        Number format in which the network computes while it is trained. "auto" is bfloat16 on CUDA
        devices that have it, and float32 elsewhere. Losses and weights are always float32, and so
        is everything that is computed after training.
    devices : int, default=1
        Number of GPUs, or of cores, that a fit and an update train the network on. Each has a
        process of its own and computes its part of every batch. ``docs/scale.md`` says more.

    Examples
    --------
    >>> Training(batch_size=128)
    Training(batch_size=128)
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "batch_size": validation.whole(1),
        "learning_rate": validation.in_range(0.0),
        "update_learning_rate": validation.in_range(0.0),
        "weight_decay": validation.in_range(0.0),
        "clip": validation.optional(validation.in_range(1e-6)),
        "augmentation": validation.optional(validation.among(AUGMENTATIONS)),
        "schedule": validation.among(SCHEDULES),
        "precision": validation.among(PRECISIONS),
        "devices": validation.whole(1),
    }
    implied: ClassVar[Mapping[str, Any]] = {"devices": 1}

    batch_size: int = 64
    learning_rate: float = 0.01
    update_learning_rate: float = 0.01
    weight_decay: float = 0.001
    clip: float | None = 1.0
    augmentation: str | None = "shift"
    schedule: str = CONSTANT
    precision: str = AUTO
    devices: int = 1

    def settings(self, epochs: int, learning_rate: float) -> Settings:
        """The settings for this number of epochs and this learning rate."""
        return Settings(
            epochs=epochs,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            clip=self.clip,
            augmentation=self.augmentation,
            schedule=self.schedule,
            precision=self.precision,
        )


@dataclass(frozen=True)
class Epoch:
    """The result of an epoch: its number, its mean loss, and all embeddings that it computed."""

    number: int
    loss: float
    z: Tensor  # (n, d), in the order of ``rows``
    rows: Tensor  # (n,)


def epochs(
    network: Network,
    X: Tensor,
    batches: Batches,
    objective: Objective,
    settings: Settings,
    *,
    seed: int,
    purpose: str,
    pull: Pull | None = None,
) -> Iterator[Epoch]:
    """Train ``network`` on rows of ``X``, and yield after each epoch.

    The caller may use the epoch's embeddings (to anneal prototypes, say) before the next one
    starts, and may stop early by leaving the loop. The network comes back in evaluation mode.
    A ``pull`` moves the weights after every step. Within an epoch the host never waits for the
    device, unless ``batches`` or ``objective`` do. The embeddings that they get are float32.
    If several ranks train together, the embeddings and the loss are those of all of them.
    """
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.momentum > 0,
        weight_decay=settings.weight_decay,
    )
    instances = _make_loader(
        X,
        settings.augmentation,
        torch_generator(seed, purpose, "augmentation", device=X.device),
    )
    group = current_group()
    own_step = _make_step(network, instances, objective, settings.precision, group)
    try:
        with group.average(network, own_step) as step:
            for number in range(settings.epochs):
                with isolated_torch(seed, purpose, "dropout", number, *group.key):
                    done = _one_epoch(
                        network, step, batches(number), optimizer, settings.in_epoch(number),
                        number, pull,
                    )  # fmt: skip
                if not math.isfinite(done.loss):
                    raise BadConfig(
                        f"{purpose}: the loss became {done.loss} in epoch {number + 1}: lower the "
                        "learning rate, or bring the instances to a smaller scale."
                    )
                progress.report(purpose, number + 1, settings.epochs)
                yield done
    finally:
        network.eval()


def _make_loader(
    X: Tensor, augmentation: str | None, generator: torch.Generator
) -> Callable[[Tensor], Tensor]:
    """Make the function that maps row numbers to augmented instances of ``X``."""
    augment = make_augmentation(augmentation, X)
    return lambda rows: X[rows] if augment is None else augment(X[rows], generator)


def _make_step(
    network: Network,
    instances: Callable[[Tensor], Tensor],
    objective: Objective,
    precision: str,
    group: Group,
) -> Step:
    """Make the function that computes the loss and the embeddings of a batch."""

    def step(rows: Tensor) -> tuple[Tensor, Tensor]:
        part = group.select_part(instances(rows))
        with compute_in(precision, network.device):
            z = network(part)
        z = z.float()  # squared distances in bfloat16 have too few digits
        z = group.gather(z, len(rows))
        return objective(z, rows), z.detach()

    return step


def _one_epoch(
    network: Network,
    step: Step,
    batches: Iterable[Tensor],
    optimizer: torch.optim.Optimizer,
    settings: Settings,
    number: int,
    pull: Pull | None,
) -> Epoch:
    optimizer.param_groups[0]["lr"] = settings.learning_rate
    losses: list[Tensor] = []
    embeddings: list[Tensor] = []
    seen: list[Tensor] = []
    for rows in batches:
        network.train(len(rows) > 1)  # one instance has no batch statistics
        loss, z = step(rows)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.clip is not None:
            nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], settings.clip)
        optimizer.step()
        if pull is not None:
            pull(settings.step)
        losses.append(loss.detach())
        embeddings.append(z)
        seen.append(rows)
    return Epoch(number, float(torch.stack(losses).mean()), torch.cat(embeddings), torch.cat(seen))


def shuffle_batches(
    n: int, batch_size: int, generator: torch.Generator, device: torch.device
) -> Batches:
    """Random batches of nearly equal size that hold each of ``n`` rows once per epoch."""
    n_batches = max(1, math.ceil(n / batch_size))

    def of_epoch(_: int) -> Iterable[Tensor]:
        order = torch.randperm(n, generator=generator, device=generator.device).to(device)
        return torch.tensor_split(order, n_batches)

    return of_epoch


def even_batches(
    y: Tensor, batch_size: int, generator: torch.Generator, device: torch.device
) -> Batches:
    """Random batches in which every class has the same number of rows, up to one, per epoch.

    An epoch has at least as many rows as ``y``. A class with more rows than its share is drawn
    from, and a class with fewer is repeated.
    """
    drawn_on = generator.device
    members = [torch.nonzero(y == c)[:, 0].to(drawn_on) for c in torch.unique(y).tolist()]
    share = math.ceil(len(y) / len(members))
    n_batches = math.ceil(share * len(members) / batch_size)

    def of_epoch(_: int) -> Iterable[Tensor]:
        rows = torch.cat([_repeat_shuffled(rows, share, generator) for rows in members])
        order = torch.randperm(len(rows), generator=generator, device=drawn_on)
        return torch.tensor_split(rows[order].to(device), n_batches)

    return of_epoch


def _repeat_shuffled(rows: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """``n`` of these rows in random order; none is taken twice before each was taken once."""
    rounds = math.ceil(n / len(rows))
    orders = [
        torch.randperm(len(rows), generator=generator, device=generator.device)
        for _ in range(rounds)
    ]
    return rows[torch.cat(orders)[:n]]
