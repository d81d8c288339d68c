"""ODIN-CNN: a classifier whose softmax, tempered and on nudged inputs, is low on novel classes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.random import derived_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_network import WithNetwork
from cilf.nn.classifier import grow_head, train_classifier
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import Network, as_tensor, backbone_features, embed, to_numpy

BATCH = 512


@dataclass(kw_only=True, repr=False, eq=False)
class ODIN(WithNetwork, MarkingLearner):
    """A convolutional classifier with ODIN's score, and k-means on what it marks.

    The score of an instance is its largest softmax probability at a high temperature, after a
    small step of the input that raises it: the step raises it more for known classes. Instances
    that score below nearly all held-out known ones are novel.

    Args:
        temperature: that logits are divided by.
        epsilon: length of the step, in deviations of the training data for each channel.
        accepted: share of held-out known instances that the threshold accepts.
        calibration_size: labelled instances of each class kept out of training, for the threshold.
        seed, device, backbone, width, epochs, batch_size, learning_rate, weight_decay, clip,
            augmentation, update_epochs, update_learning_rate: see :class:`WithNetwork`.
        k_max, least_silhouette, cluster_all, memory_size: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
        >>> learner = ODIN(epochs=5).fit(X, ["a"] * 30 + ["b"] * 30)
        >>> learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist()
        ['a', 'b']

    Reference: Liang, Li and Srikant, "Enhancing the reliability of out-of-distribution image
    detection in neural networks", ICLR 2018. ``docs/methods/odin-cnn.md`` numbers the differences.
    """

    name: ClassVar[str] = "odin-cnn"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithNetwork.domains,
        **MarkingLearner.domains,
        "temperature": validation.between(1e-3),
        "epsilon": validation.between(0.0),
        "accepted": validation.between(0.0, 1.0),
        "calibration_size": validation.whole(1),
    }

    temperature: float = 1000.0
    epsilon: float = 0.0014
    accepted: float = 0.95
    calibration_size: int = 20

    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """As the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"cluster_all": True} | changed))

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        train, aside = set_aside(y, self.calibration_size, rng, there=y[:0])
        architecture = self._wanted_architecture(embedding_size=int(y.max()) + 1)
        network = self._make_network(X.shape[1:], architecture)
        known = Memory(X[train], y[train])
        network.standardise(as_tensor(known.X, network.device))
        self._train(network, known, self.epochs, self.learning_rate, "fit")
        self._network, self._architecture = network, architecture
        self._memory = known.rebalanced(self.memory_size, rng)
        self._calibration = Memory(X[aside], y[aside])

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        train, aside = set_aside(y, self.calibration_size, rng, there=self._calibration.y)
        pool = Memory(X[train], y[train]).joined(self._memory.X, self._memory.y)
        network = copy.deepcopy(self._network)
        grow_head(network, n_classes, self.seed)
        self._train(network, pool, self.update_epochs, self.update_learning_rate, "update")
        self._network = network
        self._architecture = self._architecture | {"embedding_size": n_classes}
        self._memory = pool.rebalanced(self.memory_size, rng)
        self._calibration = self._calibration.joined(X[aside], y[aside])

    def _train(
        self, network: Network, labelled: Memory, epochs: int, rate: float, purpose: str
    ) -> None:
        x, labels = self._tensors(labelled, network)
        made = (purpose,) if purpose == "fit" else (purpose, self._n_updates)
        train_classifier(
            network, x, labels, self._settings(epochs, rate), batch_size=self.batch_size,
            draws=torch_generator(self.seed, *made), seed=derived_seed(self.seed, *made),
            purpose=purpose,
        )  # fmt: skip

    def _mark(self, X: Array) -> Marks:
        x = as_tensor(X, self._network.device)
        features = backbone_features(self._network, x)
        label = self._network.embedding(features).argmax(1).cpu().numpy()
        score = self._scores(x)
        held_out = self._scores(as_tensor(self._calibration.X, x.device))
        threshold = np.quantile(held_out, 1 - self.accepted) if len(held_out) else -np.inf
        return Marks(-score, score < threshold, label, to_numpy(features))

    def _scores(self, x: Tensor) -> Floats:
        scores = [
            odin_scores(self._network, batch, self.temperature, self.epsilon)
            for batch in torch.split(x, BATCH)
        ]
        return to_numpy(torch.cat(scores)) if scores else np.zeros(0, dtype=np.float32)

    def _predict(self, X: Array) -> Ints:
        logits = embed(self._network, as_tensor(X, self._network.device))
        return logits.argmax(1).cpu().numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(backbone_features(self._network, as_tensor(X, self._network.device)))

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = self._network_state()
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        return weights | kept, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_network(self._inner_shape, arrays, plain)
        self._memory = Memory.stored(arrays, "memory")
        self._calibration = Memory.stored(arrays, "calibration")


def odin_scores(network: Network, x: Tensor, temperature: float, epsilon: float) -> Tensor:
    """The largest softmax probability at this temperature, of inputs moved to raise it.

    Each value moves by ``epsilon`` deviations against the gradient of the cross entropy with the
    class the network predicts. The network is in evaluation mode.
    """
    nudged = network.scaled(x).detach().requires_grad_()
    with torch.enable_grad():
        logits = network.of_scaled(nudged) / temperature
        (gradient,) = torch.autograd.grad(
            F.cross_entropy(logits, logits.argmax(1), reduction="sum"), nudged
        )
    with torch.no_grad():
        moved = nudged - epsilon * gradient.sign()
        scores: Tensor = F.softmax(network.of_scaled(moved) / temperature, dim=1).amax(1)
    return scores
