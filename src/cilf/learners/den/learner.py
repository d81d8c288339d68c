"""DEN: a network that re-trains what a new task touches, and grows where that is not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.random import derived_seed, torch_generator
from cilf.core.types import Array, Floats
from cilf.learners.base import Arrays
from cilf.learners.den.expandable import (
    ExpandableBlock,
    Masks,
    and_then,
    block_of,
    dead_units,
    frozen,
    group_soft_threshold,
    on_features,
    only,
    soft_threshold,
    split_drifted,
    use_block,
)
from cilf.learners.dnn_base import DNNBase
from cilf.learners.marking import Marks
from cilf.learners.with_classifier import Made
from cilf.nn import training
from cilf.nn.anchors import Anchors
from cilf.nn.memory import Memory
from cilf.nn.network import Network, backbone_features, to_numpy


@dataclass(frozen=True)
class _Task:
    """What an update brings, as the block sees it."""

    network: Network  # the block alone
    features: Tensor  # (n, f)
    outputs: Tensor  # (o,) that are trained
    targets: Tensor  # (n, o), 1 where the output is the instance's class
    settings: training.Settings
    draws: torch.Generator
    seed: int

    @property
    def block(self) -> ExpandableBlock:
        return block_of(self.network)

    def loss(self, logits: Tensor, rows: Tensor | slice = slice(None)) -> Tensor:
        """Binary cross entropy of the trained outputs."""
        return one_against_rest(logits[:, self.outputs], self.targets[rows])

    @torch.no_grad()
    def worst_loss(self, logits: Tensor, rows: Tensor | slice = slice(None)) -> float:
        """Of the instances of the new classes, or of the others, whichever have the larger.

        A mean over all would be low where few new instances are lost among many others.
        """
        targets = self.targets[rows]
        new = targets.any(1)
        parts = [part for part in (new, ~new) if part.any()]
        losses = [one_against_rest(logits[part][:, self.outputs], targets[part]) for part in parts]
        return max(loss.item() for loss in losses)

    @torch.no_grad()
    def loss_now(self) -> float:
        return self.worst_loss(self.network(self.features))


@dataclass(kw_only=True, repr=False, eq=False)
class DEN(DNNBase):
    """A classifier whose last layers grow with the classes, and keep old outputs as they were.

    Each class has a sigmoid output, which uses the hidden units that were there when the class
    came. An update finds the units that the new outputs are connected to and re-trains these; if
    that does not suffice it adds units, and drops those that it does not need; units that have
    moved far are split into what they were and what they became. The backbone learns from the
    first classes and is frozen then.

    Args:
        hidden_units: of each hidden layer between the backbone and the outputs, at first.
        hidden_layers: how many there are.
        max_units: no hidden layer gets more.
        ex_k: units that an update adds to each hidden layer, and those that it splits, at most.
        l1: weight of the absolute values, which makes weights zero.
        pull: weight of the squared distance from the weights before an update.
        group_lasso: weight of the length of each new unit's weights, which drops units.
        loss_threshold: an update adds units if its loss stays above this.
        split_threshold: units are split whose weights have moved by more than this.
        update_epochs: of each part of an update, at most; and of making weights of ``fit`` zero.
        replay: see :class:`DNNBase`, as for all other parameters.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
        >>> learner = DEN(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.update(X[60:], ["c"] * 30).predict([[-8.0, -8.0], [0.0, 0.0]]).tolist()
        ['a', 'b']

    Reference: Yoon, Yang, Lee and Hwang, "Lifelong learning with dynamically expandable
    networks", ICLR 2018. ``docs/methods/den.md`` numbers the differences.
    """

    name: ClassVar[str] = "den"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **DNNBase.domains,
        **dict.fromkeys(["hidden_units", "hidden_layers", "max_units"], validation.whole(1)),
        "ex_k": validation.whole(0),
        **dict.fromkeys(
            ["l1", "pull", "group_lasso", "loss_threshold", "split_threshold"],
            validation.between(0.0),
        ),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {
        "learned_class_looks_less_novel": "training of a new output ends at loss_threshold, so it "
        "stays less sure of its class than the first ones are of theirs"
    }

    hidden_units: int = 64
    hidden_layers: int = 1
    max_units: int = 256
    ex_k: int = 10
    l1: float = 0.001
    pull: float = 0.5
    group_lasso: float = 0.03
    loss_threshold: float = 0.05
    split_threshold: float = 0.05
    update_epochs: int = 100

    # ------------------------------------------------------------- the network, and files

    def _wanted_architecture(self, **more: Any) -> dict[str, Any]:
        units = [min(self.hidden_units, self.max_units)] * self.hidden_layers
        stamps = [[*units, more["embedding_size"]]]
        return super()._wanted_architecture(**more) | {"stamps": stamps}

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        usual = {name: value for name, value in architecture.items() if name != "stamps"}
        network = super()._make_network(shape, usual)
        use_block(network, architecture["stamps"]).draw(torch_generator(self.seed, "block"))
        return network

    def _network_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = super()._network_state()
        plain["architecture"]["stamps"] = [list(s) for s in block_of(self._network).stamps]
        return weights, plain

    # ------------------------------------------------------------- learning

    def _grow(self, network: Network, n_classes: int) -> None:
        block = block_of(network)
        n_new = n_classes - block.stamps[-1][-1]
        if n_new:
            block.open_stamp(n_new, torch_generator(self.seed, "outputs", n_classes))

    def _train(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        if made[0] == "fit":
            self._first_task(network, labelled, settings, made)
        else:
            self._next_task(network, labelled, settings, made)

    def _first_task(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        """All of it, with weight decay; then the block alone, whose weights become sparse."""
        x, labels = self._tensors(labelled, network)
        block = block_of(network)
        targets = F.one_hot(labels, block.stamps[0][-1]).float()
        draws = torch_generator(self.seed, *made)
        batches = training.shuffled(len(x), self.training.batch_size, draws, network.device)
        block.settled = False
        for _ in training.epochs(
            network, x, batches, lambda logits, rows: one_against_rest(logits, targets[rows]),
            settings, seed=derived_seed(self.seed, *made), purpose="fit",
        ):  # fmt: skip
            pass
        block.settled = True
        task = self._task(network, labelled, settings, made, n_known=0)
        for _ in self._epochs(
            task, "fit: sparse weights", self._shrinking(task, block.new_weights())
        ):
            pass

    def _next_task(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        """Selective retraining, expansion where it is needed, split and duplication."""
        n_known = block_of(self._network).stamps[-1][-1]
        task = self._task(network, labelled, settings, made, n_known)
        block, before = task.block, frozen(block_of(self._network))
        brings_classes = len(block.stamps) > len(before.stamps)
        self._retrain_selected(task, before, brings_classes)
        if not brings_classes:
            return  # no output would use further units
        if task.loss_now() > self.loss_threshold:
            self._expand(task)
        if any(map(len, split_drifted(block, before, self.split_threshold, self._room(block)))):
            self._run(task, "new units", block.new_weights())

    def _task(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made,
        n_known: int,
    ) -> _Task:  # fmt: skip
        """The outputs of classes that are new; if none is, of those that have instances."""
        x, labels = self._tensors(labelled, network)
        present = torch.from_numpy(np.unique(labelled.y)).to(labels.device)
        outputs = present[present >= n_known] if (present >= n_known).any() else present
        return _Task(
            network=on_features(network),
            features=backbone_features(network, x),
            outputs=outputs,
            targets=(labels[:, None] == outputs[None, :]).float(),
            settings=replace(
                settings, epochs=self.update_epochs, weight_decay=0.0, augmentation=None
            ),
            draws=torch_generator(self.seed, *made),
            seed=derived_seed(self.seed, *made),
        )

    def _retrain_selected(self, task: _Task, before: ExpandableBlock, brings_classes: bool) -> None:
        """Train new outputs alone, with L1; then all that they are connected to."""
        block = task.block
        if brings_classes:
            wanted = block.output_weights(task.outputs)
            self._run(task, "outputs", wanted, self._shrinking(task, wanted))
        anchors = Anchors.of(before)
        self._run(
            task, "selected units", block.connected(task.outputs),
            pull=lambda step: anchors.pull(block, self.pull * step),
        )  # fmt: skip

    def _expand(self, task: _Task) -> None:
        """Add units, train what leads to them and from them, drop those that became zero."""
        block = task.block
        room = self._room(block)
        if not any(room):
            return
        block.add_units(room, task.draws)
        new, shorten = block.new_weights(), self._shortening(task)
        self._run(task, "added units", new, shorten, to_the_end=True)  # or all would stay
        for layer, units in enumerate(dead_units(block)):
            block.drop_units(layer, units)

    def _room(self, block: ExpandableBlock) -> list[int]:
        """How many units each hidden layer may get."""
        return [max(0, min(self.ex_k, self.max_units - n)) for n in block.stamps[-1][:-1]]

    def _run(
        self, task: _Task, part: str, masks: Masks,
        after_step: Callable[[], None] = lambda: None, pull: training.Pull | None = None,
        to_the_end: bool = False,
    ) -> None:  # fmt: skip
        """Train these weights until the loss is below the threshold, or the epochs are over."""
        until = 0.0 if to_the_end else self.loss_threshold
        with only(task.block, masks):
            for done in self._epochs(task, f"update: {part}", after_step, pull):
                if task.worst_loss(done.z, done.rows) < until:
                    break

    def _epochs(
        self, task: _Task, purpose: str, after_step: Callable[[], None],
        pull: training.Pull | None = None,
    ) -> Iterator[training.Epoch]:  # fmt: skip
        n, device = len(task.features), task.features.device
        batches = training.shuffled(n, self.training.batch_size, task.draws, device)
        return training.epochs(
            task.network, task.features, and_then(batches, after_step), task.loss, task.settings,
            seed=task.seed, purpose=purpose, pull=pull,
        )  # fmt: skip

    def _shrinking(self, task: _Task, masks: Masks) -> Callable[[], None]:
        """The step of proximal descent for L1: these weights come nearer to zero."""
        block, by = task.block, task.settings.step(0) * self.l1

        @torch.no_grad()
        def step() -> None:
            for weight, mask in zip(block.weights, masks, strict=True):
                weight.copy_(torch.where(mask, soft_threshold(weight, by), weight))

        return step

    def _shortening(self, task: _Task) -> Callable[[], None]:
        """The step of proximal descent for the group lasso: a group is what leads to a new unit."""
        block, by = task.block, task.settings.step(0) * self.group_lasso

        @torch.no_grad()
        def step() -> None:
            for weight, first in zip(block.weights, block.stamps[-2][:-1], strict=False):
                weight[first:] = group_soft_threshold(weight[first:], by)

        return step

    # ------------------------------------------------------------- what it says

    def _mark(self, X: Array) -> Marks:
        logits, features = self._outputs(X)
        novelty = improbability(logits)
        marked = novelty > self._most_accepted(self._novelty)
        return Marks(novelty, marked, logits.argmax(1).cpu().numpy(), to_numpy(features))

    def _novelty(self, X: Array) -> Floats:
        return improbability(self._outputs(X)[0])


def one_against_rest(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross entropy, summed over outputs, the mean over instances."""
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(logits)


def improbability(logits: Tensor) -> Floats:
    """1 - the largest sigmoid probability."""
    return to_numpy(torch.sigmoid(-logits.double().amax(1)))
