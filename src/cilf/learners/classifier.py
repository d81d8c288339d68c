"""The base of learners whose network is a classifier: its training, its memory, its threshold."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cilf.core import Detection, validation
from cilf.core.random import derive_seed, generator, torch_generator
from cilf.core.types import Array, Bools, Floats, Ints
from cilf.learners.base import Arrays, Learner
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn import pretrained
from cilf.nn.backbones import Factory
from cilf.nn.classifier import grow_head, softmax_uncertainty, train_classifier
from cilf.nn.memory import Memory
from cilf.nn.network import (
    Network,
    as_tensor,
    backbone_features,
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
from cilf.nn.training import Pull, Settings, Training
from cilf.nn.views import learn_views

NETWORK = "network"  # the name of its weights in a file
ONE_CLASS_ALONE = "an output without anchors that sees its own class alone learns to win everywhere"


@dataclass(frozen=True)
class Task:
    """A new network and the data of one fit or update. The learner takes it over at the end."""

    network: Network
    architecture: dict[str, Any]
    labelled: Memory  # to train on
    held_out: Memory  # of all classes, kept out of training
    settings: Settings
    rng: np.random.Generator
    seed: int
    key: tuple[str | int, ...]  # ("fit",) or ("update", number): what random numbers depend on

    @property
    def purpose(self) -> str:
        """The first word of progress messages."""
        return str(self.key[0])

    @property
    def training_seed(self) -> int:
        return derive_seed(self.seed, *self.key)

    def generator(self, *purpose: str) -> torch.Generator:
        return torch_generator(self.seed, *self.key, *purpose)

    def device_generator(self) -> torch.Generator:
        """A generator on the device of the network, for what is drawn for each batch."""
        return torch_generator(self.seed, *self.key, device=self.network.device)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Instances and labels to train on."""
        return self.labelled.tensors(self.network.device)


@dataclass(kw_only=True, repr=False, eq=False)
class ClassifierLearner(Learner):
    """A network with one logit for each class, trained on labels and on a memory.

    ``_fit`` and ``_update`` begin a task, train its network and take it over at the end. A
    subclass may replace them and ``_score_novelty``.
    Held-out instances of each class give the novelty of known instances.

    Parameters
    ----------
    accepted_share : float, default=0.95
        Share of the held-out known instances whose novelty stays below the threshold.
    calibration_size : int, default=20
        Number of labelled instances of each class that are held out of training for the threshold.
    memory_size : int, default=2000
        Largest number of labelled instances that an update trains on again.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["epochs", "update_epochs", "memory_size"], validation.whole(0)),
        "accepted_share": validation.in_range(0.0, 1.0),
        "calibration_size": validation.whole(1),
    }

    seed: int = 0
    device: str = "auto"
    backbone: str | Factory = "auto"
    width: int | None = None
    epochs: int = 20
    update_epochs: int = 15
    training: Training = Training()
    accepted_share: float = 0.95
    calibration_size: int = 20
    memory_size: int = 2000

    _architecture: dict[str, Any] = field(init=False)  # parameters may change after fitting
    _network: Network = field(init=False)
    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return pretrained.choose_network(self.backbone, X)

    # ------------------------------------------------------------- training

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._finish(task)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        self._train(task)
        self._finish(task)

    def _begin_fit(self, X: Array, y: Ints) -> Task:
        """A new network, for the instances that are not held out."""
        rng = generator(self.seed, "fit")
        labelled, held_out = self._divide(X, y, self.calibration_size, rng)
        architecture = self._choose_architecture(int(y.max()) + 1)
        network = self._make_network(X.shape[1:], architecture)
        network.standardise(as_tensor(labelled.X, network.device))
        return Task(
            network=network,
            architecture=architecture,
            labelled=labelled,
            held_out=held_out,
            settings=self.training.settings(self.epochs, self.training.learning_rate),
            rng=rng,
            seed=self.seed,
            key=("fit",),
        )

    def _begin_update(self, X: Array, y: Ints, n_classes: int) -> Task:
        """A copy of the network, for the memory and the instances that are not held out."""
        rng = generator(self.seed, "update", self._n_updates)
        new, held_out = self._divide(
            X, y, self.calibration_size, rng, memory=self._memory, held_out=self._calibration
        )
        return Task(
            network=copy.deepcopy(self._network),
            architecture=self._architecture | {"embedding_size": n_classes},
            labelled=new.combine(self._memory.X, self._memory.y),
            held_out=held_out,
            settings=self.training.settings(self.update_epochs, self.training.update_learning_rate),
            rng=rng,
            seed=self.seed,
            key=("update", self._n_updates),
        )

    def _train(self, task: Task, pull: Pull | None = None) -> None:
        """Minimise the cross entropy; ``pull`` moves the weights after each step."""
        train_classifier(
            task.network, *task.tensors(), task.settings, batch_size=self.training.batch_size,
            generator=task.device_generator(), seed=task.training_seed, purpose=task.purpose,
            pull=pull,
        )  # fmt: skip

    def _finish(self, task: Task, *, replay: bool = True) -> None:
        """Take over the network and the data of a task; ``replay`` keeps a memory for updates."""
        self._network, self._architecture = task.network, task.architecture
        self._memory = task.labelled.rebalance(self.memory_size if replay else 0, task.rng)
        self._calibration = task.held_out

    def _choose_architecture(self, n_classes: int) -> dict[str, Any]:
        return {"backbone": self.backbone, "width": self.width, "embedding_size": n_classes}

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        device = resolve_device(self.device)
        return make_network(instance_shape=shape, seed=self.seed, device=device, **architecture)

    # ------------------------------------------------------------- prediction and novelty

    @property
    def _output_network(self) -> Network:
        """The network that predicts."""
        return self._network

    def _outputs(self, X: Array) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        features = backbone_features(
            self._output_network, as_tensor(X, self._output_network.device)
        )
        with torch.no_grad():
            return self._output_network.embedding(features), features

    def _predict(self, X: Array) -> Ints:
        return self._score_classes(X).argmax(1).cpu().numpy()

    def _score_classes(self, X: Array) -> Tensor:
        return self._outputs(X)[0]

    def _embed(self, X: Array) -> Floats:
        return to_numpy(self._outputs(X)[1])

    def _score_novelty(self, X: Array, logits: Tensor) -> Array:
        """Novelty of instances with these logits."""
        return softmax_uncertainty(logits)

    def _threshold(self) -> float:
        """The novelty that the accepted share of the held-out known instances stays below."""
        if not len(self._calibration):
            return np.inf
        logits, _ = self._outputs(self._calibration.X)
        novelty = self._score_novelty(self._calibration.X, logits)
        return float(np.quantile(novelty, self.accepted_share))

    def _score_window(self, X: Array) -> ScoredWindow:
        logits, features = self._outputs(X)
        novelty = self._score_novelty(X, logits)
        label = logits.argmax(1).cpu().numpy()
        return ScoredWindow(novelty, novelty > self._threshold(), label, to_numpy(features))

    def _cluster_novel(
        self, X: Array, n_novel: int | None, clustering: NovelClustering
    ) -> Detection:
        """Cluster the instances of a window whose novelty is above the threshold."""
        rng = torch_generator(self.seed, "detect", self._n_updates)
        shared = self._shared_space(X, lambda X: self._score_window(X).is_novel)
        return clustering.detect(self._score_window(X), n_novel, self.classes_, rng, shared)

    def _shared_space(self, X: Array, is_novel: Callable[[Array], Bools]) -> SharedSpace:
        """The space that CILF would cluster this window in, with the views of this network."""
        learn = partial(learn_views, self._output_network, inputs_only=self._features is not None)
        return SharedSpace(X, self._memories(), learn, is_novel, self.seed)

    # ------------------------------------------------------------- files

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights = weight_arrays(self._network, NETWORK)
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        return weights | kept, {"architecture": plain_architecture(self._architecture)}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._architecture = restore_architecture(plain["architecture"], self.backbone)
        self._network = self._make_network(self._inner_shape, self._architecture)
        load_weights(self._network, arrays, NETWORK)
        self._memory = Memory.restore(arrays, "memory")
        self._calibration = Memory.restore(arrays, "calibration")
