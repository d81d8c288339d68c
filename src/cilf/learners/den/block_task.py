"""Training of an expandable block on one task: selective retraining, expansion, splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.parameters import Part
from cilf.learners.den.expandable import (
    ExpandableBlock,
    Masks,
    block_of,
    dead_units,
    group_soft_threshold,
    soft_threshold,
    split_drifted,
    train_only,
)
from cilf.nn import training
from cilf.nn.anchors import Anchors
from cilf.nn.network import Network


@dataclass(frozen=True, kw_only=True, repr=False)
class Expansion(Part):
    """The hidden layers between the backbone and the outputs, and how they grow.

    Parameters
    ----------
    hidden_units : int, default=64
        Number of units of each hidden layer at first.
    hidden_layers : int, default=1
        Number of hidden layers.
    max_units : int, default=256
        Largest number of units of a hidden layer.
    ex_k : int, default=10
        Largest number of units that an update adds to a hidden layer, and that it splits.
    l1 : float, default=0.001
        Weight of the absolute values of weights, which makes weights zero.
    pull : float, default=0.5
        Weight of the squared distance from the weights before an update.
    group_lasso : float, default=0.03
        Weight of the length of each added unit's weights, which drops units.
    loss_threshold : float, default=0.05
        Loss above which an update adds units.
    split_threshold : float, default=0.05
        Distance that the weights of a unit move before it is split.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["hidden_units", "hidden_layers", "max_units"], validation.whole(1)),
        "ex_k": validation.whole(0),
        **dict.fromkeys(
            ["l1", "pull", "group_lasso", "loss_threshold", "split_threshold"],
            validation.in_range(0.0),
        ),
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

    def first_stamp(self, n_outputs: int) -> list[int]:
        """Units of each hidden layer of a new block, then its outputs."""
        return [min(self.hidden_units, self.max_units)] * self.hidden_layers + [n_outputs]

    def room(self, block: ExpandableBlock) -> list[int]:
        """Number of units that each hidden layer may get in one step."""
        return [max(0, min(self.ex_k, self.max_units - n)) for n in block.stamps[-1][:-1]]


@dataclass(frozen=True)
class BlockTask:
    """The data of one fit or update as a block gets them, and the steps that train it."""

    network: Network  # the block alone
    features: Tensor  # (n, f)
    outputs: Tensor  # (o,) that are trained
    targets: Tensor  # (n, o), 1 where the output is the instance's class
    expansion: Expansion
    settings: training.Settings
    batch_size: int
    rng: torch.Generator
    seed: int

    @property
    def block(self) -> ExpandableBlock:
        return block_of(self.network)

    # ------------------------------------------------------------- steps

    def make_sparse(self) -> None:
        """Train a new block with L1."""
        shrink = self._make_shrink(self.block.new_weights())
        for _ in self._epochs("fit: sparse weights", shrink):
            pass

    def learn(self, before: ExpandableBlock) -> None:
        """Retrain what the task touches; add and split units if it brings classes."""
        brings_classes = len(self.block.stamps) > len(before.stamps)
        if brings_classes:
            self._train_outputs()
        self._retrain_selected(before)
        if not brings_classes:
            return  # no output would use further units
        if self._worst_loss(self._logits()) > self.expansion.loss_threshold:
            self._expand()
        room = self.expansion.room(self.block)
        split = split_drifted(self.block, before, self.expansion.split_threshold, room)
        if any(map(len, split)):
            self._train("new units", self.block.new_weights())

    def _train_outputs(self) -> None:
        """Train the new outputs alone, with L1."""
        weights = self.block.output_weights(self.outputs)
        self._train("outputs", weights, self._make_shrink(weights))

    def _retrain_selected(self, before: ExpandableBlock) -> None:
        """Train the sub-network of the outputs, near its weights before."""
        pull = Anchors.of(before).make_pull(self.block, self.expansion.pull)
        self._train("selected units", self.block.find_subnetwork(self.outputs), pull)

    def _expand(self) -> None:
        """Add units, train the weights from and to them, drop those that became zero."""
        room = self.expansion.room(self.block)
        if not any(room):
            return
        self.block.add_units(room, self.rng)
        weights, shorten = self.block.new_weights(), self._make_shorten()
        self._train("added units", weights, shorten, until=0.0)  # else all of them would stay
        for layer, units in enumerate(dead_units(self.block)):
            self.block.drop_units(layer, units)

    # ------------------------------------------------------------- training

    def _train(
        self,
        part: str,
        masks: Masks,
        pull: training.Pull | None = None,
        until: float | None = None,
    ) -> None:
        """Train these weights until the loss is low enough, or the epochs are over."""
        threshold = self.expansion.loss_threshold if until is None else until
        with train_only(self.block, masks):
            for epoch in self._epochs(f"update: {part}", pull):
                if self._worst_loss(epoch.z, epoch.rows) < threshold:
                    break

    def _epochs(self, purpose: str, pull: training.Pull | None) -> Iterator[training.Epoch]:
        n, device = len(self.features), self.features.device
        batches = training.shuffle_batches(n, self.batch_size, self.rng, device)
        return training.epochs(
            self.network, self.features, batches, self._loss, self.settings,
            seed=self.seed, purpose=purpose, pull=pull,
        )  # fmt: skip

    def _loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return one_against_rest(logits[:, self.outputs], self.targets[rows])

    @torch.no_grad()
    def _worst_loss(self, logits: Tensor, rows: Tensor | slice = slice(None)) -> float:
        """The loss on the new classes or on the other instances, whichever is larger.

        A mean over all instances is low where few new instances are lost among many others.
        """
        targets = self.targets[rows]
        new = targets.any(1)
        halves = [half for half in (new, ~new) if half.any()]
        losses = [one_against_rest(logits[half][:, self.outputs], targets[half]) for half in halves]
        return max(loss.item() for loss in losses)

    @torch.no_grad()
    def _logits(self) -> Tensor:
        logits: Tensor = self.network(self.features)
        return logits

    # ------------------------------------------------------------- proximal steps

    def _make_shrink(self, masks: Masks) -> training.Pull:
        """The proximal step of L1, which moves these weights towards zero."""

        @torch.no_grad()
        def pull(step: float) -> None:
            by = step * self.expansion.l1
            for weight, mask in zip(self.block.weights, masks, strict=True):
                weight.copy_(torch.where(mask, soft_threshold(weight, by), weight))

        return pull

    def _make_shorten(self) -> training.Pull:
        """The proximal step of the group lasso; a group is the weights into a new unit."""

        @torch.no_grad()
        def pull(step: float) -> None:
            block, by = self.block, step * self.expansion.group_lasso
            for weight, first in zip(block.weights, block.stamps[-2][:-1], strict=False):
                weight[first:] = group_soft_threshold(weight[first:], by)

        return pull


def one_against_rest(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross entropy, summed over outputs, averaged over instances."""
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(logits)
