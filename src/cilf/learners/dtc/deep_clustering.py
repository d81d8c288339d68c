"""Deep embedded clustering: a network is tuned until its embedding falls into clusters.

Instances are assigned to clusters by a Student t distribution around trainable centres. The network
is trained towards a sharpened version of these assignments (Xie et al. 2016). Han et al. (2019)
start from a network that knows other classes, and average assignments over epochs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.core import validation
from cilf.core.distances import squared_distances
from cilf.core.parameters import Part
from cilf.core.random import derive_seed, isolated_torch, torch_generator
from cilf.nn.augment import make_augmentation
from cilf.nn.network import Network, embed
from cilf.nn.training import Epoch, Settings, Training, epochs, shuffle_batches

PI, TE, TEP = "pi", "te", "tep"
VARIANTS = ("baseline", PI, TE, TEP)
N_STARTS = 20  # of the k-means that finds the first centres


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning(Part):
    """The deep clustering of a window, which tunes a copy of the network.

    Parameters
    ----------
    variant : {"tep", "baseline", "pi", "te"}, default="tep"
        Targets and losses. "tep" makes targets from assignments averaged over epochs, the others
        from the last ones. "pi" adds a loss between two augmentations of an instance. "te" adds a
        loss between an instance and its average over epochs.
    warmup_epochs : int, default=10
        Number of passes over the window with the first target.
    warmup_learning_rate : float, default=0.1
        Learning rate of the passes with the first target.
    sharpen_epochs : int, default=100
        Largest number of passes over the window with renewed targets.
    sharpen_learning_rate : float, default=0.05
        Learning rate of the passes with renewed targets.
    weight_decay : float, default=0.00001
        Weight of the penalty on the squared weights.
    refresh : int, default=5
        Number of epochs between two targets.
    ensemble_decay : float, default=0.6
        Share of the average over epochs that stays in each epoch.
    consistency : float, default=10.0
        Weight of the additional loss of "pi" and "te".
    rampup : int, default=5
        Number of epochs until the additional loss has its full weight.
    tolerance : float or None, default=0.001
        Share of instances that change their cluster between two targets at which the tuning ends.
        None tunes for all epochs.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "variant": validation.among(VARIANTS),
        **dict.fromkeys(["warmup_epochs", "sharpen_epochs", "rampup"], validation.whole(0)),
        "refresh": validation.whole(1),
        **dict.fromkeys(
            ["warmup_learning_rate", "sharpen_learning_rate", "weight_decay", "consistency"],
            validation.in_range(0.0),
        ),
        "ensemble_decay": validation.in_range(0.0, 0.999),
        "tolerance": validation.optional(validation.in_range(0.0, 1.0)),
    }

    variant: str = TEP
    warmup_epochs: int = 10
    warmup_learning_rate: float = 0.1
    sharpen_epochs: int = 100
    sharpen_learning_rate: float = 0.05
    weight_decay: float = 1e-5
    refresh: int = 5
    ensemble_decay: float = 0.6
    consistency: float = 10.0
    rampup: int = 5
    tolerance: float | None = 0.001


def soft_assignments(z: Tensor, centres: Tensor) -> Tensor:
    """q: how much each instance belongs to each centre, by Student's t with one degree of freedom.

    >>> soft_assignments(torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0]]))
    tensor([[0.6667, 0.3333]])
    """
    closeness = 1 / (1 + squared_distances(z, centres))
    return closeness / closeness.sum(1, keepdim=True)


def target_distribution(q: Tensor) -> Tensor:
    """p: squared assignments over the size of each cluster, which sharpens them.

    >>> target_distribution(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    weight = q.square() / q.sum(0)
    return weight / weight.sum(1, keepdim=True)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q), the mean over instances."""
    return F.kl_div(q.log(), p, reduction="batchmean")


class TemporalEnsemble:
    """A moving average of assignments over epochs, without the bias of its first zeros.

    >>> ensemble = TemporalEnsemble(decay=0.6)
    >>> [round(float(ensemble.add(torch.tensor([q]))), 3) for q in (1.0, 1.0, 0.0)]
    [1.0, 1.0, 0.49]
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.total: Tensor | float = 0.0
        self.n_added = 0

    def add(self, q: Tensor) -> Tensor:
        """Add the assignments of one epoch, and return the average over all epochs."""
        self.total = self.decay * self.total + (1 - self.decay) * q
        self.n_added += 1
        return self.total / (1 - self.decay**self.n_added)


def sigmoid_rampup(epoch: int, length: int) -> float:
    """From exp(-5) at the first epoch to 1 after ``length`` epochs.

    >>> round(sigmoid_rampup(0, 5), 4), sigmoid_rampup(5, 5)
    (0.0067, 1.0)
    """
    left = 1 - min(epoch, length) / length if length else 0.0
    return math.exp(-5 * left * left)


def principal_head(features: Tensor, n_outputs: int) -> nn.Linear:
    """A linear layer that projects on the main directions of these features, centred.

    Outputs beyond the number of features are zero.
    """
    with isolated_torch(0, "bottleneck"):  # a layer draws weights, though none of them stays
        head = nn.Linear(features.shape[1], n_outputs).to(features.device)
    mean = features.mean(0)
    centred = (features - mean).double()
    _, directions = torch.linalg.eigh(centred.T @ centred)  # in columns, the main ones last
    main = directions.T.flip(0)[:n_outputs].to(features.dtype)
    largest = main.gather(1, main.abs().argmax(1, keepdim=True))
    main = main * largest.sign()  # the sign of a direction is arbitrary: make it one
    with torch.no_grad():
        head.weight.zero_()
        head.weight[: len(main)] = main
        head.bias.copy_(-head.weight @ mean)
    return head


def principal_clusters(
    network: Network, features: Tensor, n_clusters: int, generator: torch.Generator
) -> Network:
    """A copy of the network with a bottleneck for a head, and trainable ``centres``.

    The bottleneck projects on the main directions of these features, as many as there are
    clusters; the centres are those that k-means finds there.
    """
    clustering = copy.deepcopy(network)
    clustering.head = principal_head(features, n_clusters)
    with torch.no_grad():
        z = clustering.embedding(features)
    found = semi_supervised_kmeans(
        z, z[:0], n_clusters, generator=generator, n_starts=N_STARTS, n_steps=100
    )
    clustering.register_parameter("centres", nn.Parameter(found.centres.clone()))
    return clustering


def assignments(network: Network, x: Tensor) -> Tensor:
    """q of each instance, with the network in evaluation mode."""
    return soft_assignments(embed(network, x), network.get_parameter("centres").detach())


def tune(network: Network, x: Tensor, tuning: Tuning, training: Training, *, seed: int) -> None:
    """Sharpen the clusters of a network that :func:`principal_clusters` made.

    The network is trained towards its first target, then towards targets that are renewed every few
    epochs, until hardly any instance changes its cluster from one target to the next. ``training``
    has the batches, and what else ``tuning`` leaves open.
    """
    training = training.replace(weight_decay=tuning.weight_decay)
    warmup = training.settings(tuning.warmup_epochs, tuning.warmup_learning_rate)
    sharpen = training.settings(tuning.sharpen_epochs, tuning.sharpen_learning_rate)
    batch_size = training.batch_size
    targets = target_distribution(assignments(network, x))
    for _ in _epochs(network, x, targets, warmup, batch_size, seed):
        pass
    q = assignments(network, x)
    cluster = q.argmax(1)
    targets.copy_(target_distribution(q))
    ensemble = TemporalEnsemble(tuning.ensemble_decay)
    consistency = _Consistency(network, x, tuning, sharpen.augmentation, seed)
    for epoch in _epochs(network, x, targets, sharpen, batch_size, seed, consistency):
        q = assignments(network, x)
        averaged = ensemble.add(q)
        consistency.next_epoch(averaged)
        if epoch.number % tuning.refresh:
            continue
        targets.copy_(target_distribution(averaged if tuning.variant == TEP else q))
        changed, cluster = float((q.argmax(1) != cluster).float().mean()), q.argmax(1)
        if epoch.number and tuning.tolerance is not None and changed <= tuning.tolerance:
            break


def _epochs(
    network: Network,
    x: Tensor,
    targets: Tensor,
    settings: Settings,
    batch_size: int,
    seed: int,
    more: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Iterator[Epoch]:
    """Train towards these targets, which the caller may change after each epoch."""
    centres = network.get_parameter("centres")
    part = "warm-up" if more is None else "rounds"

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        q = soft_assignments(z, centres)
        loss = divergence(targets[rows], q)
        return loss if more is None else loss + more(q, rows)

    rng = torch_generator(seed, part, "batches", device=x.device)
    batches = shuffle_batches(len(x), batch_size, rng, x.device)
    return epochs(
        network, x, batches, objective, settings, seed=derive_seed(seed, part), purpose="detect"
    )


class _Consistency:
    """The additional loss of "pi" and "te": the distance to other assignments of an instance.

    "pi" takes those of another augmentation, "te" the average over epochs.
    """

    def __init__(
        self, network: Network, x: Tensor, tuning: Tuning, augmentation: str | None, seed: int
    ) -> None:
        self.network, self.x, self.tuning = network, x, tuning
        self.augment = make_augmentation(augmentation, x)
        self.rng = torch_generator(seed, "second view", device=x.device)
        self.epoch = 0
        self.averaged: Tensor | None = None

    def next_epoch(self, averaged: Tensor) -> None:
        self.epoch, self.averaged = self.epoch + 1, averaged

    def __call__(self, q: Tensor, rows: Tensor) -> Tensor:
        other = self._other_assignments(rows)
        if other is None:
            return q.sum() * 0.0
        weight = self.tuning.consistency * sigmoid_rampup(self.epoch, self.tuning.rampup)
        return weight * F.mse_loss(q, other)

    def _other_assignments(self, rows: Tensor) -> Tensor | None:
        if self.tuning.variant == TE:
            return None if self.averaged is None else self.averaged[rows]
        if self.tuning.variant != PI:
            return None
        x = self.x[rows] if self.augment is None else self.augment(self.x[rows], self.rng)
        return soft_assignments(self.network(x), self.network.get_parameter("centres"))
