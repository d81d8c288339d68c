"""Hidden layers that get more units with each task.

The units of one task never depend on units that came later.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.nn.network import Network, make_network

Stamp = tuple[int, ...]
"""Number of units of each hidden layer, then of outputs, after a task."""
Masks = list[Tensor]
"""A selection of weights, by layer: (units, units of the layer before)."""


class ExpandableBlock(nn.Module):
    """Hidden layers with ReLU, and one output for each class, with the stamps of all tasks.

    Weights from a unit to a unit of an earlier task stay zero.

    >>> block = ExpandableBlock(3, [(4, 2)])
    >>> block.open_stamp(1, torch.Generator().manual_seed(0))
    >>> block.add_units([2], torch.Generator().manual_seed(0))
    >>> block.stamps, block(torch.ones(5, 3)).shape
    ([(4, 2), (6, 3)], torch.Size([5, 3]))
    """

    def __init__(self, n_features: int, stamps: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.stamps: list[Stamp] = [tuple(stamp) for stamp in stamps]
        self.scaling = nn.BatchNorm1d(n_features, affine=False)
        self.scaling_is_fixed = True  # whether training leaves the scaling as it is
        sizes = pairwise((n_features, *self.stamps[-1]))
        self.weights = nn.ParameterList(torch.zeros(n_out, n_in) for n_in, n_out in sizes)
        self.biases = nn.ParameterList(torch.zeros(n) for n in self.stamps[-1])

    def forward(self, features: Tensor) -> Tensor:
        """(n, f) -> (n, classes): the outputs of each task, from the units of its time."""
        return torch.cat([self.of_stamp(features, t) for t in range(len(self.stamps))], dim=1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.scaling.train(mode and not self.scaling_is_fixed)
        return self

    def of_stamp(self, features: Tensor, number: int) -> Tensor:
        """Compute the outputs that came with this task."""
        units = self.stamps[number][:-1]
        hidden = self.scaling(features)
        for layer, n in enumerate(units):
            hidden = F.relu(self._layer(layer, hidden, slice(n)))
        return self._layer(len(units), hidden, self.outputs_of(number))

    def _layer(self, layer: int, inputs: Tensor, rows: slice) -> Tensor:
        # A copy, so that the same numbers are added in the same order however large it has grown.
        weight = self.weights[layer][rows, : inputs.shape[1]].contiguous()
        return F.linear(inputs, weight, self.biases[layer][rows])

    def outputs_of(self, number: int) -> slice:
        """Which outputs came with this task."""
        return slice(self.stamps[number - 1][-1] if number else 0, self.stamps[number][-1])

    # ------------------------------------------------------------- growing

    @torch.no_grad()
    def reset(self, rng: torch.Generator) -> None:
        """Take random weights, as for a first task."""
        for weight in self.weights:
            weight.copy_(_random_weights(weight.shape[0], weight.shape[1], rng))

    @torch.no_grad()
    def open_stamp(self, n_outputs: int, rng: torch.Generator) -> None:
        """Begin a task with this number of new outputs, whose bias is the mean of the others."""
        rows = _random_weights(n_outputs, self.weights[-1].shape[1], rng).to(
            self.weights[-1].device
        )
        bias = self.biases[-1].mean().expand(n_outputs)
        self._append(len(self.weights) - 1, rows, bias)
        self.stamps.append((*self.stamps[-1][:-1], self.weights[-1].shape[0]))

    @torch.no_grad()
    def add_units(self, numbers: Sequence[int], rng: torch.Generator) -> None:
        """Add these numbers of units to the hidden layers, for the current task."""
        for layer, n in enumerate(numbers):
            fan_in = self.weights[layer].shape[1]
            rows = _random_weights(n, fan_in, rng).to(self.weights[layer].device)
            self.append_units(layer, rows, rows.new_zeros(n))
            above = self.weights[layer + 1]
            first = self._first_new(layer + 1)
            columns = _random_weights(len(above) - first, above.shape[1], rng)[:, :n]
            above[first:, above.shape[1] - n :] = columns.to(above.device)

    @torch.no_grad()
    def append_units(self, layer: int, rows: Tensor, bias: Tensor) -> None:
        """Add units with these weights to a hidden layer; nothing above is connected to them."""
        self._append(layer, rows, bias)
        above = self.weights[layer + 1]
        self.weights[layer + 1] = nn.Parameter(F.pad(above, (0, len(rows))))
        self._restamp()

    @torch.no_grad()
    def drop_units(self, layer: int, rows: Tensor) -> None:
        """Remove these units of the current task from a hidden layer."""
        kept = torch.ones(len(self.weights[layer]), dtype=torch.bool, device=rows.device)
        kept[rows] = False
        self.weights[layer] = nn.Parameter(self.weights[layer][kept])
        self.biases[layer] = nn.Parameter(self.biases[layer][kept])
        self.weights[layer + 1] = nn.Parameter(self.weights[layer + 1][:, kept])
        self._restamp()

    def _append(self, layer: int, rows: Tensor, bias: Tensor) -> None:
        self.weights[layer] = nn.Parameter(torch.cat([self.weights[layer], rows]))
        self.biases[layer] = nn.Parameter(torch.cat([self.biases[layer], bias]))

    def _restamp(self) -> None:
        self.stamps[-1] = tuple(len(weight) for weight in self.weights)

    def _first_new(self, layer: int) -> int:
        """Number of the first unit (or output) that came with the current task."""
        return self.stamps[-2][layer] if len(self.stamps) > 1 else 0

    # ------------------------------------------------------------- selections

    def new_weights(self) -> Masks:
        """The weights into units and outputs that came with the current task."""
        masks = [torch.zeros_like(weight, dtype=torch.bool) for weight in self.weights]
        for layer, mask in enumerate(masks):
            mask[self._first_new(layer) :] = True
        return masks

    def output_weights(self, outputs: Tensor) -> Masks:
        """The weights into these outputs, from the units they may use."""
        masks = [torch.zeros_like(weight, dtype=torch.bool) for weight in self.weights]
        for output in outputs.tolist():
            stamp = next(stamp for stamp in self.stamps if output < stamp[-1])
            masks[-1][output, : stamp[-2]] = True
        return masks

    def find_subnetwork(self, outputs: Tensor) -> Masks:
        """The weights of the units that reach these outputs along non-zero weights."""
        masks = self.output_weights(outputs)
        masks[-1] &= self.weights[-1] != 0
        units = masks[-1].any(0)
        for layer in range(len(self.weights) - 2, -1, -1):
            linked = (self.weights[layer] != 0) & units[:, None]
            below = linked.any(0)
            masks[layer] = units[:, None] & below[None, :] & self._mask_earlier(layer)
            units = below
        return masks

    def _mask_earlier(self, layer: int) -> Tensor:
        """Whether each weight of a hidden layer comes from a unit no newer than its own."""
        n_units, n_inputs = self.weights[layer].shape
        device = self.weights[layer].device
        born = torch.zeros(n_units, 1, device=device)
        inputs_born = torch.zeros(1, n_inputs, device=device)
        for stamp in self.stamps[:-1]:
            born[stamp[layer] :] += 1
            if layer:
                inputs_born[:, stamp[layer - 1] :] += 1
        earlier: Tensor = inputs_born.le(born)
        return earlier


def _random_weights(n_out: int, n_in: int, rng: torch.Generator) -> Tensor:
    """Weights of the size that torch gives those of a linear layer."""
    bound = max(n_in, 1) ** -0.5
    weights = torch.empty(n_out, n_in, device=rng.device)
    return weights.uniform_(-bound, bound, generator=rng)


# ------------------------------------------------------------- sparsity


def soft_threshold(weight: Tensor, by: float) -> Tensor:
    """Move every weight towards zero by this much, and stop there.

    >>> soft_threshold(torch.tensor([0.5, -0.3, 0.1]), 0.2).tolist()
    [0.300..., -0.100..., 0.0]
    """
    return weight.sign() * (weight.abs() - by).clamp_min(0)


def group_soft_threshold(weight: Tensor, by: float) -> Tensor:
    """Shorten every row by this much; a row that is no longer becomes zero.

    >>> group_soft_threshold(torch.tensor([[3.0, 4.0], [0.1, 0.0]]), 1.0).tolist()
    [[2.4000..., 3.2000...], [0.0, 0.0]]
    """
    length = torch.linalg.vector_norm(weight, dim=1, keepdim=True)
    return weight * (1 - by / length.clamp_min(by)) if by else weight


def dead_units(block: ExpandableBlock) -> list[Tensor]:
    """The units of the current task without inputs, by hidden layer."""
    return [
        first + (weight[first:] == 0).all(1).nonzero().flatten()
        for first, weight in zip(block.stamps[-2], block.weights[:-1], strict=False)
    ]


# ------------------------------------------------------------- split and duplication


def drifts(block: ExpandableBlock, before: ExpandableBlock) -> list[Tensor]:
    """Distance that the weights into each earlier unit have moved, by hidden layer."""
    return [
        torch.linalg.vector_norm(now[: len(old), : old.shape[1]] - old, dim=1)
        for now, old in zip(block.weights[:-1], before.weights[:-1], strict=True)
    ]


@torch.no_grad()
def split_drifted(
    block: ExpandableBlock, before: ExpandableBlock, threshold: float, room: Sequence[int]
) -> list[Tensor]:
    """Split the units that drifted by more than the threshold; return them by layer.

    They get back the weights they had before. Copies with the drifted weights belong to the current
    task, whose units and outputs are connected to the copies instead. At most ``room`` units of a
    layer are split, those that drifted most.
    """
    split = []
    for drift, most in zip(drifts(block, before), room, strict=True):
        farthest = drift.argsort(descending=True, stable=True)[:most]
        split.append(farthest[drift[farthest] > threshold])
    for layer, units in enumerate(split):
        old = before.weights[layer]
        copies = block.weights[layer][units].clone()
        block.weights[layer][units, : old.shape[1]] = old[units]
        block.append_units(layer, copies, block.biases[layer][units])
    for layer, units in enumerate(split):
        above, first = block.weights[layer + 1], len(before.weights[layer + 1])
        above[first:, above.shape[1] - len(units) :] = above[first:, units]
        above[first:, units] = 0
    return split


# ------------------------------------------------------------- training


@contextmanager
def train_only(block: ExpandableBlock, masks: Masks) -> Iterator[None]:
    """Inside the block, training changes these weights only, and no bias."""
    hooks = [
        weight.register_hook(lambda gradient, mask=mask: gradient * mask)
        for weight, mask in zip(block.weights, masks, strict=True)
    ]
    block.biases.requires_grad_(False)
    try:
        yield
    finally:
        block.biases.requires_grad_(True)
        for hook in hooks:
            hook.remove()


# ------------------------------------------------------------- in a network


def use_block(network: Network, stamps: Sequence[Sequence[int]]) -> ExpandableBlock:
    """Put a block with these stamps in the place of the network's head."""
    block = ExpandableBlock(network.head.in_features, stamps).to(network.device)
    network.head = block  # type: ignore[assignment]
    return block


def block_of(network: Network) -> ExpandableBlock:
    """The block of a network that :func:`use_block` gave one."""
    return cast(ExpandableBlock, network.head)


def make_block_network(network: Network) -> Network:
    """A network of the same block alone, whose inputs are the features of the backbone."""
    block = block_of(network)
    n_features = block.weights[0].shape[1]
    alone = make_network(
        lambda _: nn.Identity(), (n_features,), embedding_size=1, width=None,
        seed=0, device=network.device,
    )  # fmt: skip
    alone.head = block  # type: ignore[assignment]
    return alone


def copy_frozen(block: ExpandableBlock) -> ExpandableBlock:
    """A copy that is not trained."""
    return copy.deepcopy(block).requires_grad_(False)
