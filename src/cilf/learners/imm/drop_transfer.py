"""Drop transfer: dropout whose zero point is not 0 but the weights of an earlier task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from cilf.nn.anchors import Anchors


@contextmanager
def drop_transfer(network: nn.Module, earlier: Anchors, rate: float) -> Iterator[None]:
    """Let inputs of linear layers use their earlier weights with probability ``rate``.

    This holds inside the block. The other inputs use weights that make the expectation equal to the
    current weights. Biases, convolutions and outputs without earlier weights do not change.
    """
    hooks = []
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Linear):
            weight = earlier.weights[f"{name}.weight".removeprefix(".")]  # the root has no name
            hooks.append(layer.register_forward_hook(partial(_mix_weights, weight, rate)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _mix_weights(
    earlier: Tensor, rate: float, layer: nn.Linear, inputs: tuple[Any, ...], output: Tensor
) -> Tensor:
    """The output of this layer, had some of its inputs the earlier weights."""
    (x,) = inputs
    off = F.dropout(x, rate) - x  # mean 0: -x, or x * rate / (1 - rate)
    noise = F.linear(off, layer.weight[: len(earlier)] - earlier)
    return output + F.pad(noise, (0, output.shape[-1] - len(earlier)))
