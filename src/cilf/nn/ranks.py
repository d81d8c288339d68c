"""What the ranks of one training share: each is a process with a device of its own.

All ranks draw the same batches. A rank computes the embeddings of its part of a batch, gathers
those of the whole batch, and computes the loss of all of them. The gradients of the ranks are
averaged by DistributedDataParallel, so that every rank takes the step that one process would take
with that batch. Batch normalisation takes the statistics of the whole batch.

This is plain torch. Lightning Fabric starts processes and wraps a network in the same class; the
gathering, the statistics and the way back of the result would be the same lines beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

Step = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Row numbers of a batch -> its loss and its embeddings."""


@dataclass(frozen=True)
class Group:
    """The ranks that train together, and which of them this process is. One is alone."""

    rank: int = 0
    size: int = 1

    @property
    def key(self) -> tuple[str | int, ...]:
        """What this rank adds to the purpose of random numbers that are its own."""
        return ("rank", self.rank) if self.rank else ()

    def select_part(self, batch: Tensor) -> Tensor:
        """The part of a batch that this rank computes.

        >>> Group(rank=1, size=2).select_part(torch.arange(5)).tolist()
        [3, 4]
        """
        return batch if self.size == 1 else torch.tensor_split(batch, self.size)[self.rank]

    def gather(self, part: Tensor, n: int) -> Tensor:
        """The embeddings of a batch of ``n``, in order. The gradient reaches this rank's part.

        Every rank computes the loss of the whole batch, so that the average of the gradients would
        be too small by the number of ranks.
        """
        if self.size == 1:
            return part
        sizes = [len(rows) for rows in torch.tensor_split(torch.arange(n), self.size)]
        padded = F.pad(part.detach(), (0, 0, 0, max(sizes) - len(part)))
        gathered = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(gathered, padded)
        parts = [z[:size] for z, size in zip(gathered, sizes, strict=True)]
        part.register_hook(lambda gradient: gradient * self.size)  # type: ignore[no-untyped-call]
        return torch.cat([*parts[: self.rank], part, *parts[self.rank + 1 :]])

    @contextmanager
    def average(self, network: nn.Module, step: Step) -> Iterator[Step]:
        """The step of a training whose gradients, and batch statistics, are those of all ranks."""
        if self.size == 1:
            yield step
            return
        device = next(network.parameters()).device
        with use_global_statistics(network):
            yield DistributedDataParallel(
                _StepOf(network, step),
                device_ids=[device] if device.type == "cuda" else None,
                find_unused_parameters=True,  # such as a head that an objective leaves out
            )


_group: ContextVar[Group] = ContextVar("cilf_ranks", default=Group())  # noqa: B039  # it is frozen


def current_group() -> Group:
    """The ranks that train together now."""
    return _group.get()


@contextmanager
def use_group(group: Group) -> Iterator[None]:
    """Train with these ranks inside the block."""
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)


class _StepOf(nn.Module):
    """A step as a module. All weights that it uses, in an objective too, are the network's."""

    def __init__(self, network: nn.Module, step: Step) -> None:
        super().__init__()
        self.network, self.step = network, step

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.step(rows)


# ------------------------------------------------------------- batch normalisation


@contextmanager
def use_global_statistics(network: nn.Module) -> Iterator[None]:
    """Inside the block batch normalisation takes the statistics of the parts of all ranks.

    The layers stay the same objects, with their names and weights: only their class changes.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]
    classes = [layer.__class__ for layer in layers]
    on_gpu = next(network.parameters()).is_cuda
    try:
        for layer in layers:
            layer.__class__ = GlobalBatchNormOnGPU if on_gpu else GlobalBatchNorm
        yield
    finally:
        for layer, before in zip(layers, classes, strict=True):
            layer.__class__ = before


class GlobalBatchNormOnGPU(nn.SyncBatchNorm):
    """Batch normalisation by the parts of all ranks, as torch has it for GPUs."""

    process_group = None  # all ranks


class GlobalBatchNorm(_BatchNorm):
    """The same on the CPU, where torch's refuses to work."""

    def _check_input_dim(self, x: Tensor) -> None:
        """Do nothing: the layer that this one was has had the same input."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        wide, axes = x.float(), (0, *range(2, x.ndim))
        n_own = wide.new_tensor([x.numel() / x.shape[1]])
        sums = _sum_over_ranks(torch.cat([wide.sum(axes), n_own]))
        n, mean = sums[-1].detach(), sums[:-1] / sums[-1].detach()
        centred = wide - mean.view(shape)
        variance = _sum_over_ranks(centred.square().sum(axes)) / n
        _track(self, mean.detach(), variance.detach() * n / (n - 1))
        scale = (variance + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        normal = centred * scale.view(shape)
        return (normal if self.bias is None else normal + self.bias.view(shape)).to(x.dtype)


@torch.no_grad()
def _track(layer: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    """Move the statistics that the layer has in evaluation mode, as the layer itself does."""
    if layer.running_mean is None or layer.running_var is None:
        return
    assert layer.num_batches_tracked is not None  # it is there if the others are
    layer.num_batches_tracked += 1
    share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    layer.running_mean.lerp_(mean, share)
    layer.running_var.lerp_(variance, share)


def _sum_over_ranks(x: Tensor) -> Tensor:
    """The sum of a tensor over all ranks; its gradient is the sum of theirs."""
    total: Tensor = _SumOverRanks.apply(x)  # type: ignore[no-untyped-call]
    return total


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total
