"""Hidden layers that get more units with each task, and outputs that know which units they may use.

What the units of one task compute never depends on units that came later.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.nn import training
from cilf.nn.network import Network, make_network

Stamp = tuple[int, ...]
"""Units of each hidden layer, then outputs, once a task was learned: all that were there."""
Masks = list[Tensor]
"""Of each layer, which of its weights are meant: (units, units of the layer before)."""


class ExpandableBlock(nn.Module):
    """Hidden layers with ReLU, and one output for each class, with the stamps of all tasks.

    Weights from a unit to one of an earlier task are zero, and are to stay so.

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
        self.settled = True  # training does not change the scaling
        sizes = pairwise((n_features, *self.stamps[-1]))
        self.weights = nn.ParameterList(torch.zeros(n_out, n_in) for n_in, n_out in sizes)
        self.biases = nn.ParameterList(torch.zeros(n) for n in self.stamps[-1])

    def forward(self, features: Tensor) -> Tensor:
        """(n, f) -> (n, classes): the outputs of each task, from the units of its time."""
        return torch.cat([self.of_stamp(features, t) for t in range(len(self.stamps))], dim=1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.scaling.train(mode and not self.settled)
        return self

    def of_stamp(self, features: Tensor, number: int) -> Tensor:
        """The outputs that came with this task."""
        units = self.stamps[number][:-1]
        seen = self.scaling(features)
        for layer, n in enumerate(units):
            seen = F.relu(self._layer(layer, seen, slice(n)))
        return self._layer(len(units), seen, self.outputs_of(number))

    def _layer(self, layer: int, seen: Tensor, rows: slice) -> Tensor:
        # A copy, so that the same numbers are added in the same order however large it has grown.
        weight = self.weights[layer][rows, : seen.shape[1]].contiguous()
        return F.linear(seen, weight, self.biases[layer][rows])

    def outputs_of(self, number: int) -> slice:
        """Which outputs came with this task."""
        return slice(self.stamps[number - 1][-1] if number else 0, self.stamps[number][-1])

    # ------------------------------------------------------------- growing

    @torch.no_grad()
    def draw(self, draws: torch.Generator) -> None:
        """Random weights, as for a first task."""
        for weight in self.weights:
            weight.copy_(_drawn(weight.shape[0], weight.shape[1], draws))

    @torch.no_grad()
    def open_stamp(self, n_outputs: int, draws: torch.Generator) -> None:
        """Begin a task with so many new outputs; they start from the mean bias of those before."""
        rows = _drawn(n_outputs, self.weights[-1].shape[1], draws).to(self.weights[-1].device)
        bias = self.biases[-1].mean().expand(n_outputs)
        self._append(len(self.weights) - 1, rows, bias)
        self.stamps.append((*self.stamps[-1][:-1], self.weights[-1].shape[0]))

    @torch.no_grad()
    def add_units(self, numbers: Sequence[int], draws: torch.Generator) -> None:
        """Add so many units to each hidden layer of the task at hand."""
        for layer, n in enumerate(numbers):
            fan_in = self.weights[layer].shape[1]
            rows = _drawn(n, fan_in, draws).to(self.weights[layer].device)
            self.append_units(layer, rows, rows.new_zeros(n))
            above = self.weights[layer + 1]
            first = self._first_new(layer + 1)
            columns = _drawn(len(above) - first, above.shape[1], draws)[:, :n]
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
        """Remove these units, which came with the task at hand, from a hidden layer."""
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
        """Number of the first unit (or output) that came with the task at hand."""
        return self.stamps[-2][layer] if len(self.stamps) > 1 else 0

    # ------------------------------------------------------------- parts of it

    def new_weights(self) -> Masks:
        """The weights into units and outputs that came with the task at hand."""
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

    def connected(self, outputs: Tensor) -> Masks:
        """The sub-network of these outputs: weights between units that non-zero ones lead to."""
        masks = self.output_weights(outputs)
        masks[-1] &= self.weights[-1] != 0
        units = masks[-1].any(0)
        for layer in range(len(self.weights) - 2, -1, -1):
            linked = (self.weights[layer] != 0) & units[:, None]
            below = linked.any(0)
            masks[layer] = units[:, None] & below[None, :] & self._earlier(layer)
            units = below
        return masks

    def _earlier(self, layer: int) -> Tensor:
        """Which weights of a hidden layer come from units that are not later than its own."""
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


def _drawn(n_out: int, n_in: int, draws: torch.Generator) -> Tensor:
    """Weights of the size that torch gives those of a linear layer."""
    bound = max(n_in, 1) ** -0.5
    return torch.empty(n_out, n_in).uniform_(-bound, bound, generator=draws)


# ------------------------------------------------------------- sparsity


def soft_threshold(weight: Tensor, by: float) -> Tensor:
    """Every weight nearer to zero, those that reach it are zero.

    >>> soft_threshold(torch.tensor([0.5, -0.3, 0.1]), 0.2).tolist()
    [0.300..., -0.100..., 0.0]
    """
    return weight.sign() * (weight.abs() - by).clamp_min(0)


def group_soft_threshold(weight: Tensor, by: float) -> Tensor:
    """Every row shorter; those that are no longer than ``by`` are zero.

    >>> group_soft_threshold(torch.tensor([[3.0, 4.0], [0.1, 0.0]]), 1.0).tolist()
    [[2.4000..., 3.2000...], [0.0, 0.0]]
    """
    length = torch.linalg.vector_norm(weight, dim=1, keepdim=True)
    return weight * (1 - by / length.clamp_min(by)) if by else weight


def dead_units(block: ExpandableBlock) -> list[Tensor]:
    """Of each hidden layer, the units of the task at hand that nothing leads to."""
    return [
        first + (weight[first:] == 0).all(1).nonzero().flatten()
        for first, weight in zip(block.stamps[-2], block.weights[:-1], strict=False)
    ]


# ------------------------------------------------------------- split and duplication


def drifts(block: ExpandableBlock, before: ExpandableBlock) -> list[Tensor]:
    """How far the weights into each earlier unit have moved, by hidden layer."""
    return [
        torch.linalg.vector_norm(now[: len(old), : old.shape[1]] - old, dim=1)
        for now, old in zip(block.weights[:-1], before.weights[:-1], strict=True)
    ]


@torch.no_grad()
def split_drifted(
    block: ExpandableBlock, before: ExpandableBlock, threshold: float, room: Sequence[int]
) -> list[Tensor]:
    """Split the units that drifted most and by more than the threshold; give them by layer.

    They get back the weights they had before. Copies that keep the drifted ones come with the
    task at hand: its units and outputs are connected to the copies in their place. At most
    ``room`` are split in each layer.
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
def only(block: ExpandableBlock, masks: Masks) -> Iterator[None]:
    """Inside, training moves these weights of the block, and no bias."""
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


def and_then(batches: training.Batches, step: Callable[[], None]) -> training.Batches:
    """The same batches; each of them, once it was trained on, is followed by this step."""

    def of_epoch(number: int) -> Iterable[Tensor]:
        for rows in batches(number):
            yield rows
            step()

    return of_epoch


# ------------------------------------------------------------- in a network


def use_block(network: Network, stamps: Sequence[Sequence[int]]) -> ExpandableBlock:
    """Put a block with these stamps in the place of the network's head."""
    block = ExpandableBlock(network.head.in_features, stamps).to(network.device)
    network.head = block  # type: ignore[assignment]
    return block


def block_of(network: Network) -> ExpandableBlock:
    """The block that :func:`use_block` put there."""
    return cast(ExpandableBlock, network.head)


def on_features(network: Network) -> Network:
    """The same block as a network of its own, that takes the features of the backbone."""
    block = block_of(network)
    n_features = block.weights[0].shape[1]
    alone = make_network(
        lambda _: nn.Identity(), (n_features,), embedding_size=1, width=None,
        seed=0, device=network.device,
    )  # fmt: skip
    alone.head = block  # type: ignore[assignment]
    return alone


def frozen(block: ExpandableBlock) -> ExpandableBlock:
    """A copy, to compare with later."""
    return copy.deepcopy(block).requires_grad_(False)
