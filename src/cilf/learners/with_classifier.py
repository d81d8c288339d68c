"""What learners share whose network is a classifier: training, growing, a memory, a threshold.

They keep held-out instances of each class, to know how novel known ones look.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cilf.core import validation
from cilf.core.random import derived_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays, Learner
from cilf.learners.with_network import WithNetwork
from cilf.nn import training
from cilf.nn.classifier import Penalty, grow_head, train_classifier
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import Network, as_tensor, backbone_features, to_numpy

Made = tuple[str | int, ...]  # ("fit",) or ("update", number): what chance depends on


@dataclass(kw_only=True, repr=False, eq=False)
class ClassifierLearner(WithNetwork, Learner):
    """A network with one logit for each class, trained on labels and a memory.

    Args:
        accepted: share of held-out known instances that are not marked as novel.
        calibration_size: labelled instances of each class kept out of training, for that.
        memory_size: labelled instances that an update replays, in all classes together.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithNetwork.domains,
        "accepted": validation.between(0.0, 1.0),
        "calibration_size": validation.whole(1),
        "memory_size": validation.whole(0),
    }

    accepted: float = 0.95
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
        settings = self.training.settings(self.epochs, self.training.learning_rate)
        self._train(network, known, settings, ("fit",))
        self._network, self._architecture = network, architecture
        self._memory = known.rebalanced(self._n_kept, rng)
        self._calibration = Memory(X[aside], y[aside])

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        train, aside = set_aside(y, self.calibration_size, rng, there=self._calibration.y)
        pool = Memory(X[train], y[train]).joined(self._memory.X, self._memory.y)
        network = copy.deepcopy(self._network)
        self._grow(network, n_classes)
        settings = self.training.settings(self.update_epochs, self.training.update_learning_rate)
        self._train(network, pool, settings, ("update", self._n_updates))
        self._network = network
        self._architecture = self._architecture | {"embedding_size": n_classes}
        self._memory = pool.rebalanced(self._n_kept, rng)
        self._calibration = self._calibration.joined(X[aside], y[aside])

    def _grow(self, network: Network, n_classes: int) -> None:
        """Give this network, which is not the learner's own yet, an output for each class."""
        grow_head(network, n_classes, self.seed)

    def _train(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        """Train this network, which is not the learner's own yet."""
        x, labels = self._tensors(labelled, network)
        train_classifier(
            network, x, labels, settings, batch_size=self.training.batch_size,
            draws=torch_generator(self.seed, *made), seed=derived_seed(self.seed, *made),
            purpose=str(made[0]), penalty=self._penalty(network, made),
            pull=self._pull(network, made),
        )  # fmt: skip

    def _penalty(self, network: Network, made: Made) -> Penalty | None:
        """What training this network adds to the loss."""
        return None

    def _pull(self, network: Network, made: Made) -> training.Pull | None:
        """What moves this network's weights after each step of training it."""
        return None

    @property
    def _n_kept(self) -> int:
        """Labelled instances in the memory that an update replays."""
        return self.memory_size

    def _predict(self, X: Array) -> Ints:
        logits, _ = self._outputs(X)
        return logits.argmax(1).cpu().numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(self._outputs(X)[1])

    def _outputs(self, X: Array) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        features = backbone_features(self._network, as_tensor(X, self._network.device))
        with torch.no_grad():
            return self._network.embedding(features), features

    def _most_accepted(self, novelty_of: Callable[[Array], Array]) -> float:
        """The novelty that the share ``accepted`` of the held-out known instances stays below."""
        if not len(self._calibration):
            return np.inf
        return float(np.quantile(novelty_of(self._calibration.X), self.accepted))

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = self._network_state()
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        return weights | kept, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_network(self._inner_shape, arrays, plain)
        self._memory = Memory.stored(arrays, "memory")
        self._calibration = Memory.stored(arrays, "calibration")
