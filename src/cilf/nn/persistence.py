"""Networks in model files: weights as arrays, an architecture as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from cilf.core.types import Array
from cilf.nn.backbones import Factory
from cilf.nn.pretrained import is_tuned, require_named


def weight_arrays(module: nn.Module, name: str) -> dict[str, Array]:
    """All weights and buffers of a module, stored under this name."""
    return {f"{name}.{key}": value.cpu().numpy() for key, value in module.state_dict().items()}


def load_weights(module: nn.Module, arrays: Mapping[str, Array], name: str) -> None:
    """Load the weights that are stored under this name, and switch to evaluation mode."""
    start = f"{name}."
    stored = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
    module.load_state_dict({key: torch.from_numpy(value) for key, value in stored.items()})
    module.eval()


def plain_architecture(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``make_network`` for JSON; a backbone that is a function becomes None."""
    return {name: None if callable(value) else value for name, value in architecture.items()}


def restore_architecture(stored: Mapping[str, Any], backbone: str | Factory) -> dict[str, Any]:
    """Undo ``plain_architecture``. ``backbone`` replaces a function."""
    if is_tuned(stored["backbone"]):  # it starts from weights that are loaded again
        require_named(stored["backbone"])
    return dict(stored) | {"backbone": stored["backbone"] or backbone}
