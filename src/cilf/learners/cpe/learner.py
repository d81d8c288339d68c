"""CPE: prototypes grow in number as a network learns; what is far from all of them is novel."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.random import derived_seed, generator, isolated_torch, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.cpe.prototype_ensemble import (
    PrototypeEnsemble,
    distance_cross_entropy,
    pairwise_loss,
)
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_network import WithNetwork
from cilf.nn import training
from cilf.nn.classifier import grown
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import Network, as_tensor, embed, to_numpy

CLASSIFIER = "classifier"  # the layer of the network that gives one logit for each class


@dataclass(kw_only=True, repr=False, eq=False)
class CPE(WithNetwork, MarkingLearner):
    """Convolutional prototype ensemble, and k-means on what it marks.

    A network is trained together with weighted prototypes: an instance joins the nearest one of
    its class, or founds one where none is within twice ``threshold``. An instance is of the class
    of the nearest prototype, and novel if that is farther than known instances usually are.

    Args:
        embedding_size: dimensions of the embedding.
        threshold: T, the unit of distances: a prototype reaches 2 T far; class odds are
            exp(-squared distance / T); the pairwise loss has the margin T around 2 T.
        pairwise: weight of the pairwise loss, which pulls an instance to its own prototype and
            to the nearest of all, or pushes it from that one where it is of another class.
        beta: sharpness of the soft hinge in that loss.
        max_prototypes: most prototypes of a class that outlast an epoch.
        std_coefficient: an instance is novel beyond mean + this * deviation of the distances of
            held-out instances of its class.
        calibration_size: labelled instances of each class kept out of training, for these
            distances; 0 takes those of training instances.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.
        k_max, least_silhouette, cluster_all, memory_size: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
        >>> learner = CPE(epochs=5).fit(X, ["a"] * 30 + ["b"] * 30)
        >>> learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist()
        ['a', 'b']

    Reference: Wang, Kong, Chandra, Tao and Khan, "Robust High Dimensional Stream Classification
    with Novel Class Detection", ICDE 2019. ``docs/methods/cpe.md`` numbers the differences.
    """

    name: ClassVar[str] = "cpe"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithNetwork.domains,
        **MarkingLearner.domains,
        **dict.fromkeys(["embedding_size", "max_prototypes"], validation.whole(1)),
        **dict.fromkeys(["threshold", "beta"], validation.between(1e-6)),
        **dict.fromkeys(["pairwise", "std_coefficient"], validation.between(0.0)),
        "calibration_size": validation.whole(0),
    }

    embedding_size: int = 1000
    threshold: float = 5.0
    pairwise: float = 0.001
    beta: float = 1.0
    max_prototypes: int = 100
    std_coefficient: float = 1.0
    calibration_size: int = 20

    _prototypes: PrototypeEnsemble = field(init=False)
    _spreads: Array = field(init=False)  # (n_classes, 2) mean and deviation of known distances
    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        train, aside = set_aside(y, self.calibration_size, rng, there=y[:0])
        known, held_out = Memory(X[train], y[train]), Memory(X[aside], y[aside])
        n_classes = int(y.max()) + 1
        architecture = self._wanted_architecture(
            embedding_size=self.embedding_size, n_classes=n_classes
        )
        network = self._make_network(X.shape[1:], architecture)
        network.standardise(as_tensor(known.X, network.device))
        none = PrototypeEnsemble.empty(self.embedding_size, network.device)
        prototypes = self._train(
            network, none, known, self.epochs, self.training.learning_rate, "fit"
        )
        unknown = np.full((n_classes, 2), np.nan)
        self._spreads = _measured(network, prototypes, known, held_out, unknown)
        self._network, self._architecture = network, architecture
        self._prototypes = prototypes
        self._memory = known.rebalanced(self.memory_size, rng)
        self._calibration = held_out

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        train, aside = set_aside(y, self.calibration_size, rng, there=self._calibration.y)
        pool = Memory(X[train], y[train]).joined(self._memory.X, self._memory.y)
        held_out = self._calibration.joined(X[aside], y[aside])
        network = copy.deepcopy(self._network)
        setattr(network, CLASSIFIER, grown(_classifier(network), n_classes, self.seed))
        prototypes = self._train(
            network,
            self._prototypes,
            pool,
            self.update_epochs,
            self.training.update_learning_rate,
            "update",
        )
        arrived = np.full((n_classes - len(self._spreads), 2), np.nan)
        before = np.concatenate([self._spreads, arrived])
        self._spreads = _measured(network, prototypes, pool, held_out, before)
        self._network = network
        self._architecture = self._architecture | {"n_classes": n_classes}
        self._prototypes = prototypes
        self._memory = pool.rebalanced(self.memory_size, rng)
        self._calibration = held_out

    def _train(
        self,
        network: Network,
        prototypes: PrototypeEnsemble,
        labelled: Memory,
        epochs: int,
        rate: float,
        purpose: str,
    ) -> PrototypeEnsemble:
        """Train the network on these instances; the prototypes that have grown by then."""
        x, y = self._tensors(labelled, network)
        made = (purpose,) if purpose == "fit" else (purpose, self._n_updates)
        batches = training.shuffled(
            len(x), self.training.batch_size, torch_generator(self.seed, *made), network.device
        )

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            nonlocal prototypes
            prototypes, own = prototypes.assigned(z.detach(), y[rows], 2 * self.threshold)
            logits = _classifier(network)(F.relu(z))
            return F.cross_entropy(logits, y[rows]) + self._ensemble_loss(z, own, prototypes)

        for _ in training.epochs(
            network, x, batches, objective, self.training.settings(epochs, rate),
            seed=derived_seed(self.seed, *made), purpose=purpose,
        ):  # fmt: skip
            prototypes = prototypes.pruned(self.max_prototypes)
        return prototypes if epochs else prototypes.completed(embed(network, x), y)

    def _ensemble_loss(self, z: Tensor, own: Tensor, prototypes: PrototypeEnsemble) -> Tensor:
        """DCE, and PW with the own prototype and with the nearest of all."""
        centres, labels = prototypes.centres, prototypes.labels
        _, nearest = prototypes.nearest(z.detach())
        scale = {"margin": self.threshold, "boundary": 2 * self.threshold, "beta": self.beta}
        pull = pairwise_loss(z, centres[own], torch.ones_like(own, dtype=torch.bool), **scale)
        push = pairwise_loss(z, centres[nearest], labels[nearest] == labels[own], **scale)
        dce = distance_cross_entropy(z, own, centres, 1 / self.threshold)
        return dce + self.pairwise * (pull + push)

    def _mark(self, X: Array) -> Marks:
        z = embed(self._network, as_tensor(X, self._network.device))
        distance, nearest = self._prototypes.nearest(z)
        label = self._prototypes.labels[nearest].cpu().numpy()
        mean, deviation = self._spreads[label].T
        novelty = distance.cpu().numpy()
        marked = novelty > mean + self.std_coefficient * deviation
        return Marks(novelty, marked, label, to_numpy(z))

    def _predict(self, X: Array) -> Ints:
        z = embed(self._network, as_tensor(X, self._network.device))
        return self._prototypes.labels[self._prototypes.nearest(z)[1]].cpu().numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(embed(self._network, as_tensor(X, self._network.device)))

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        inner = {name: value for name, value in architecture.items() if name != "n_classes"}
        network = super()._make_network(shape, inner)
        with isolated_torch(self.seed, CLASSIFIER):
            layer = nn.Linear(network.head.out_features, architecture["n_classes"])
        network.add_module(CLASSIFIER, layer.to(network.device))
        return network

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = self._network_state()
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        grown_to = self._prototypes.arrays("prototypes") | {"spreads": self._spreads}
        return weights | kept | grown_to, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_network(self._inner_shape, arrays, plain)
        self._prototypes = PrototypeEnsemble.stored(arrays, "prototypes", self._network.device)
        self._spreads = arrays["spreads"]
        self._memory = Memory.stored(arrays, "memory")
        self._calibration = Memory.stored(arrays, "calibration")


def _classifier(network: Network) -> nn.Linear:
    layer = network.get_submodule(CLASSIFIER)
    assert isinstance(layer, nn.Linear)  # it was made so
    return layer


def _measured(
    network: Network,
    prototypes: PrototypeEnsemble,
    train: Memory,
    held_out: Memory,
    before: Array,
) -> Array:
    """Mean and deviation of each class's distances to the nearest own prototype.

    Of held-out instances if there are two at least, else of training instances; a class without
    either keeps what it had ``before``.
    """
    spreads = before.copy()
    for labelled, least in ((train, 1), (held_out, 2)):
        if len(labelled):
            z = embed(network, as_tensor(labelled.X, network.device))
            y = torch.from_numpy(labelled.y).to(network.device)
            distances = prototypes.nearest_own(z, y)[0].cpu().numpy()
            for label in np.flatnonzero(np.bincount(labelled.y) >= least):
                of_class = distances[labelled.y == label]
                spreads[label] = of_class.mean(), of_class.std()
    return spreads
