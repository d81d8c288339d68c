"""What learners share whose network is a plain classifier: training, growing, a memory, a check.

They keep held-out instances of each class to judge by how sure the classifier is of known ones.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.random import derived_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays, Learner
from cilf.learners.with_network import WithNetwork
from cilf.nn.classifier import grow_head, train_classifier
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import Network, as_tensor, to_numpy, views


@dataclass(kw_only=True, repr=False, eq=False)
class ClassifierLearner(WithNetwork, Learner):
    """A network with one logit for each class, trained on labels and a memory.

    Args:
        calibration_size: labelled instances of each class kept out of training.
        memory_size: labelled instances kept in all.
        seed, device, backbone, width, epochs, batch_size, learning_rate, weight_decay, clip,
            augmentation, update_epochs, update_learning_rate: see :class:`WithNetwork`.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithNetwork.domains,
        "calibration_size": validation.whole(1),
        "memory_size": validation.whole(0),
    }

    calibration_size: int = 20
    memory_size: int = 2000

    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

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

    def _predict(self, X: Array) -> Ints:
        logits, _ = self._outputs(X)
        return logits.argmax(1).cpu().numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(self._outputs(X)[1])

    def _outputs(self, X: Array) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        logits, features, _ = views(self._network, as_tensor(X, self._network.device))
        return logits, features

    def _unsureness(self, logits: Tensor, accepted: float) -> tuple[Floats, float]:
        """1 - the largest softmax probability, and the bound that held-out ones stay below.

        ``accepted`` is the share of the held-out instances that do.
        """
        bound = np.inf
        if len(self._calibration):
            held_out = unsureness(self._outputs(self._calibration.X)[0])
            bound = float(np.quantile(held_out, accepted))
        return unsureness(logits), bound

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = self._network_state()
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        return weights | kept, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_network(self._inner_shape, arrays, plain)
        self._memory = Memory.stored(arrays, "memory")
        self._calibration = Memory.stored(arrays, "calibration")


def unsureness(logits: Tensor) -> Floats:
    """1 - the largest softmax probability.

    >>> import torch
    >>> unsureness(torch.tensor([[0.0, 0.0], [9.0, 0.0]])).round(3).tolist()
    [0.5, 0.0]
    """
    return to_numpy(1 - F.softmax(logits.double(), dim=1).amax(1))
