"""DEN: a network that retrains what a new task touches, and grows where that is not enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import torch_generator
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.classifier import ClassifierLearner, Task
from cilf.learners.den.block_task import BlockTask, Expansion, one_against_rest
from cilf.learners.den.expandable import block_of, copy_frozen, make_block_network, use_block
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn import training
from cilf.nn.network import Network, backbone_features, to_numpy


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class DEN(ClassifierLearner):
    """A classifier whose last layers grow with the classes, and whose old outputs do not change.

    Each class has a sigmoid output, which uses the hidden units that were there when the class
    came. An update finds the units that the new outputs are connected to and retrains these. If
    that does not suffice it adds units, and drops those that it does not need. Units that have
    moved far are split into what they were and what they became. The backbone learns from the first
    classes and is frozen then.

    Parameters
    ----------
    expansion : Expansion, default=Expansion()
        Hidden layers, and how they grow.
    update_epochs : int, default=100
        Largest number of passes over the data in each step of an update, and in the step of ``fit``
        that makes weights zero.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
    >>> learner = DEN(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.update(X[60:], ["c"] * 30).predict([[-8.0, -8.0], [0.0, 0.0]]).tolist()
    ['a', 'b']

    References
    ----------
    Yoon, Yang, Lee and Hwang, "Lifelong learning with dynamically expandable networks", ICLR 2018.
    ``docs/methods/den.md`` numbers the differences.
    """

    name: ClassVar[str] = "den"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "replay": validation.flag,
    }
    expected_failures: ClassVar[Mapping[str, str]] = {
        "learned_class_looks_less_novel": "training of a new output ends at loss_threshold, so it "
        "stays less sure of its class than the first ones are of theirs"
    }

    expansion: Expansion = Expansion()
    update_epochs: int = 100
    replay: bool = False
    clustering: NovelClustering = NovelClustering()

    # ------------------------------------------------------------- training

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train_all(task)
        self._begin_block(task, n_known=0).make_sparse()
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        block, n_known = block_of(task.network), len(self._classes)
        if n_classes > n_known:
            rng = torch_generator(self.seed, "outputs", n_classes)
            block.open_stamp(n_classes - n_known, rng)
        self._begin_block(task, n_known).learn(before=copy_frozen(block_of(self._network)))
        self._finish(task, replay=self.replay)

    def _train_all(self, task: Task) -> None:
        """Train backbone and block together."""
        x, labels = task.tensors()
        block = block_of(task.network)
        targets = F.one_hot(labels, block.stamps[0][-1]).float()
        batches = training.shuffle_batches(
            len(x), self.training.batch_size, task.device_generator(), x.device
        )
        block.scaling_is_fixed = False
        for _ in training.epochs(
            task.network, x, batches,
            lambda logits, rows: one_against_rest(logits, targets[rows]),
            task.settings, seed=task.training_seed, purpose=task.purpose,
        ):  # fmt: skip
            pass
        block.scaling_is_fixed = True

    def _begin_block(self, task: Task, n_known: int) -> BlockTask:
        """The task of the block alone: the outputs of new classes, else of all that have data."""
        x, labels = task.tensors()
        present = torch.from_numpy(np.unique(task.labelled.y)).to(labels.device)
        outputs = present[present >= n_known] if (present >= n_known).any() else present
        return BlockTask(
            network=make_block_network(task.network),
            features=backbone_features(task.network, x),
            outputs=outputs,
            targets=(labels[:, None] == outputs[None, :]).float(),
            expansion=self.expansion,
            settings=replace(
                task.settings, epochs=self.update_epochs, weight_decay=0.0, augmentation=None
            ),
            batch_size=self.training.batch_size,
            rng=task.device_generator(),
            seed=task.training_seed,
        )

    # ------------------------------------------------------------- detection

    def _score_novelty(self, X: Array, logits: Tensor) -> Array:
        return sigmoid_uncertainty(logits)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)

    # ------------------------------------------------------------- the network, and files

    def _choose_architecture(self, n_classes: int) -> dict[str, Any]:
        stamps = [self.expansion.first_stamp(n_classes)]
        return super()._choose_architecture(n_classes) | {"stamps": stamps}

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        usual = {name: value for name, value in architecture.items() if name != "stamps"}
        network = super()._make_network(shape, usual)
        use_block(network, architecture["stamps"]).reset(torch_generator(self.seed, "block"))
        return network

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        plain["architecture"]["stamps"] = [list(s) for s in block_of(self._network).stamps]
        return arrays, plain


def sigmoid_uncertainty(logits: Tensor) -> Array:
    """1 - the largest sigmoid probability."""
    return to_numpy(torch.sigmoid(-logits.double().amax(1)))
