"""How often the host would wait for a GPU, told on the CPU from the operations that are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cilf.learners.cilf import losses

# On a GPU each of these tells the host a value, or a number of values that decides a shape.
WAITING = {
    "aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::nonzero",
    "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::bincount",
}  # fmt: skip
SELECTING = {"aten::index", "aten::index_put_", "aten::index_put"}  # waiting if by a mask


class HostWaits(TorchDispatchMode):
    """Counts such operations inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self.count += name in WAITING or (name in SELECTING and _is_by_mask(args[1]))
        return func(*args, **(kwargs or {}))


def _is_by_mask(indices: Any) -> bool:
    return any(index is not None and index.dtype == torch.bool for index in indices)


def count_waits(work: Callable[[], object]) -> int:
    """Count how often the host would wait during this work."""
    with HostWaits() as waits:
        work()
    return waits.count


@contextmanager
def as_on_gpu() -> Iterator[None]:
    """Let the losses of CILF take the path of a GPU inside the block."""
    with mock.patch.object(losses, "is_asynchronous", return_value=True):
        yield
