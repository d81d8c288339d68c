"""CPE: an embedding with several prototypes of each class. Instances far from all are novel."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import Detection, validation
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import derive_seed, generator, isolated_torch, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays, Learner
from cilf.learners.cpe.prototype_ensemble import PrototypeEnsemble, PrototypeSettings
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn import pretrained
from cilf.nn.backbones import Factory
from cilf.nn.classifier import grow_layer
from cilf.nn.memory import Memory
from cilf.nn.network import (
    Network,
    as_tensor,
    embed,
    make_network,
    resolve_device,
    to_numpy,
)
from cilf.nn.persistence import (
    load_weights,
    plain_architecture,
    restore_architecture,
    weight_arrays,
)
from cilf.nn.training import Settings, Training, epochs, shuffle_batches
from cilf.nn.views import learn_views

NETWORK = "network"  # the name of its weights in a file
CLASSIFIER = "classifier"  # the layer of the network that gives one logit for each class


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class CPE(Learner):
    """Convolutional prototype ensemble, and k-means on novel instances.

    A network is trained together with weighted prototypes. An instance is assigned to the nearest
    prototype of its class, or becomes a new one where none is within twice ``threshold``. The class
    of an instance is that of the nearest prototype. The instance is novel if that prototype is
    farther than known instances usually are.

    Parameters
    ----------
    embedding_size : int, default=1000
        Dimension of the embedding.
    prototypes : PrototypeSettings, default=PrototypeSettings()
        Reach of the prototypes, and their losses.
    std_coefficient : float, default=1.0
        Number of deviations above the mean distance of held-out instances of a class at which the
        threshold of the class lies.
    calibration_size : int, default=20
        Number of labelled instances of each class that are held out of training for the threshold.
        0 uses the distances of training instances.
    memory_size : int, default=2000
        Largest number of labelled instances that an update trains on again.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
    >>> learner = CPE(epochs=5).fit(X, ["a"] * 30 + ["b"] * 30)
    >>> learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist()
    ['a', 'b']

    References
    ----------
    Wang, Kong, Chandra, Tao and Khan, "Robust High Dimensional Stream Classification with Novel
    Class Detection", ICDE 2019. ``docs/methods/cpe.md`` numbers the differences.
    """

    name: ClassVar[str] = "cpe"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "embedding_size": validation.whole(1),
        "std_coefficient": validation.in_range(0.0),
        **dict.fromkeys(
            ["epochs", "update_epochs", "calibration_size", "memory_size"], validation.whole(0)
        ),
    }

    seed: int = 0
    device: str = "auto"
    backbone: str | Factory = "auto"
    width: int | None = None
    epochs: int = 20
    update_epochs: int = 15
    training: Training = Training()
    embedding_size: int = 1000
    prototypes: PrototypeSettings = PrototypeSettings()
    std_coefficient: float = 1.0
    calibration_size: int = 20
    memory_size: int = 2000
    clustering: NovelClustering = NovelClustering()

    _architecture: dict[str, Any] = field(init=False)  # parameters may change after fitting
    _network: Network = field(init=False)
    _prototypes: PrototypeEnsemble = field(init=False)
    _spreads: Array = field(init=False)  # (n_classes, 2) mean and deviation of known distances
    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return pretrained.choose_network(self.backbone, X)

    # ------------------------------------------------------------- training

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        known, held_out = self._divide(X, y, self.calibration_size, rng)
        n_classes = int(y.max()) + 1
        architecture = {
            "backbone": self.backbone,
            "width": self.width,
            "embedding_size": self.embedding_size,
            "n_classes": n_classes,
        }
        network = self._make_network(X.shape[1:], architecture)
        network.standardise(as_tensor(known.X, network.device))
        none = PrototypeEnsemble.empty(self.embedding_size, network.device)
        settings = self.training.settings(self.epochs, self.training.learning_rate)
        prototypes = self._train(network, none, known, settings, ("fit",))
        unknown = np.full((n_classes, 2), np.nan)
        self._spreads = _measure_spreads(network, prototypes, known, held_out, unknown)
        self._network, self._architecture = network, architecture
        self._prototypes = prototypes
        self._memory = known.rebalance(self.memory_size, rng)
        self._calibration = held_out

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        key = ("update", self._n_updates)
        rng = generator(self.seed, *key)
        new, held_out = self._divide(
            X, y, self.calibration_size, rng, memory=self._memory, held_out=self._calibration
        )
        pool = new.combine(self._memory.X, self._memory.y)
        network = copy.deepcopy(self._network)
        setattr(network, CLASSIFIER, grow_layer(_classifier(network), n_classes, self.seed))
        settings = self.training.settings(self.update_epochs, self.training.update_learning_rate)
        prototypes = self._train(network, self._prototypes, pool, settings, key)
        unknown = np.full((n_classes - len(self._spreads), 2), np.nan)
        before = np.concatenate([self._spreads, unknown])
        self._spreads = _measure_spreads(network, prototypes, pool, held_out, before)
        self._network = network
        self._architecture = self._architecture | {"n_classes": n_classes}
        self._prototypes = prototypes
        self._memory = pool.rebalance(self.memory_size, rng)
        self._calibration = held_out

    def _train(
        self,
        network: Network,
        prototypes: PrototypeEnsemble,
        labelled: Memory,
        settings: Settings,
        key: tuple[str | int, ...],
    ) -> PrototypeEnsemble:
        """Train the network on these instances, and return the prototypes after it."""
        x, y = labelled.tensors(network.device)
        rng = torch_generator(self.seed, *key, device=network.device)
        batches = shuffle_batches(len(x), self.training.batch_size, rng, network.device)
        reach = 2 * self.prototypes.threshold

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            nonlocal prototypes
            prototypes, own = prototypes.assign(z.detach(), y[rows], reach)
            logits = _classifier(network)(F.relu(z))
            return F.cross_entropy(logits, y[rows]) + self.prototypes.loss(z, own, prototypes)

        for _ in epochs(
            network, x, batches, objective, settings,
            seed=derive_seed(self.seed, *key), purpose=str(key[0]),
        ):  # fmt: skip
            prototypes = prototypes.prune(self.prototypes.max_prototypes)
        return prototypes if settings.epochs else prototypes.complete(embed(network, x), y)

    # ------------------------------------------------------------- prediction and detection

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        rng = torch_generator(self.seed, "detect", self._n_updates)
        learn = partial(learn_views, self._network, inputs_only=self._features is not None)
        shared = SharedSpace(
            X, self._memories(), learn, lambda X: self._score_window(X).is_novel, self.seed
        )
        return self.clustering.detect(self._score_window(X), n_novel, self.classes_, rng, shared)

    def _score_window(self, X: Array) -> ScoredWindow:
        z = embed(self._network, as_tensor(X, self._network.device))
        distance, nearest = self._prototypes.nearest(z)
        label = self._prototypes.labels[nearest].cpu().numpy()
        mean, deviation = self._spreads[label].T
        novelty = distance.cpu().numpy()
        is_novel = novelty > mean + self.std_coefficient * deviation
        return ScoredWindow(novelty, is_novel, label, to_numpy(z))

    def _predict(self, X: Array) -> Ints:
        z = embed(self._network, as_tensor(X, self._network.device))
        return self._prototypes.labels[self._prototypes.nearest(z)[1]].cpu().numpy()

    def _score_classes(self, X: Array) -> Tensor:
        z = embed(self._network, as_tensor(X, self._network.device))
        own = [torch.full_like(self._prototypes.labels[:1], c) for c in range(len(self._spreads))]
        return torch.stack([-self._prototypes.nearest_own(z, label)[0] for label in own], dim=1)

    def _embed(self, X: Array) -> Floats:
        return to_numpy(embed(self._network, as_tensor(X, self._network.device)))

    # ------------------------------------------------------------- the network, and files

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        usual = {name: value for name, value in architecture.items() if name != "n_classes"}
        device = resolve_device(self.device)
        network = make_network(instance_shape=shape, seed=self.seed, device=device, **usual)
        with isolated_torch(self.seed, CLASSIFIER):
            layer = nn.Linear(network.head.out_features, architecture["n_classes"])
        network.add_module(CLASSIFIER, layer.to(network.device))
        return network

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights = weight_arrays(self._network, NETWORK)
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        prototypes = self._prototypes.arrays("prototypes") | {"spreads": self._spreads}
        plain = {"architecture": plain_architecture(self._architecture)}
        return weights | kept | prototypes, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._architecture = restore_architecture(plain["architecture"], self.backbone)
        self._network = self._make_network(self._inner_shape, self._architecture)
        load_weights(self._network, arrays, NETWORK)
        self._prototypes = PrototypeEnsemble.restore(arrays, "prototypes", self._network.device)
        self._spreads = arrays["spreads"]
        self._memory = Memory.restore(arrays, "memory")
        self._calibration = Memory.restore(arrays, "calibration")


def _classifier(network: Network) -> nn.Linear:
    layer = network.get_submodule(CLASSIFIER)
    assert isinstance(layer, nn.Linear)  # it was made so
    return layer


def _measure_spreads(
    network: Network,
    prototypes: PrototypeEnsemble,
    train: Memory,
    held_out: Memory,
    before: Array,
) -> Array:
    """Mean and deviation of each class's distances to the nearest own prototype.

    They are those of held-out instances if there are at least two, else of training instances. A
    class without either keeps its values of ``before``.
    """
    spreads = before.copy()
    for labelled, least in ((train, 1), (held_out, 2)):
        if len(labelled):
            x, y = labelled.tensors(network.device)
            z = embed(network, x)
            distances = prototypes.nearest_own(z, y)[0].cpu().numpy()
            for label in np.flatnonzero(np.bincount(labelled.y) >= least):
                of_class = distances[labelled.y == label]
                spreads[label] = of_class.mean(), of_class.std()
    return spreads
