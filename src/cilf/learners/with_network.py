"""What learners that train a network share: its parameters, making it, keeping it in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from cilf.core import validation
from cilf.core.types import Array
from cilf.learners.base import Arrays
from cilf.nn import pretrained, training
from cilf.nn.backbones import Factory
from cilf.nn.memory import Memory
from cilf.nn.network import Network, as_tensor, make_network, resolve_device

NETWORK = "network."  # before the name of each of its weights in a file


@dataclass(kw_only=True, repr=False, eq=False)
class WithNetwork:
    """Parameters of training, and a network that is made from them; beside :class:`Learner`.

    Args:
        seed: decides all that is left to chance.
        device: "auto", "cpu", "cuda", ...
        backbone: what turns an instance into features; see ``docs/methods/cilf.md``.
        width: channels (or units) of the backbone's first layer; its own default if None.
        epochs: of the initial training.
        batch_size: in all training.
        learning_rate: of the initial training.
        weight_decay: in all training.
        clip: largest norm of a gradient; None does not clip.
        augmentation: None, "shift", "flip" or "shift-flip"; images only.
        update_epochs, update_learning_rate: of an update.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "batch_size": validation.whole(1),
        **dict.fromkeys(["epochs", "update_epochs"], validation.whole(0)),
        **dict.fromkeys(
            ["learning_rate", "update_learning_rate", "weight_decay"], validation.between(0.0)
        ),
        "clip": validation.optional(validation.between(1e-6)),
    }

    seed: int = 0
    device: str = "auto"
    backbone: str | Factory = "auto"
    width: int | None = None
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    clip: float | None = 1.0
    augmentation: str | None = "shift"
    update_epochs: int = 15
    update_learning_rate: float = 0.01

    _architecture: dict[str, Any] = field(init=False)  # parameters may change after fitting
    _network: Network = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return pretrained.chosen(self.backbone, X)

    def _wanted_architecture(self, **more: Any) -> dict[str, Any]:
        return {"backbone": self.backbone, "width": self.width} | more

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        device = resolve_device(self.device)
        return make_network(instance_shape=shape, seed=self.seed, device=device, **architecture)

    def _settings(self, epochs: int, learning_rate: float) -> training.Settings:
        return training.Settings(
            epochs=epochs,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            clip=self.clip,
            augmentation=self.augmentation,
        )

    def _tensors(self, labelled: Memory, network: Network) -> tuple[Tensor, Tensor]:
        y = torch.from_numpy(labelled.y).to(network.device)
        return as_tensor(labelled.X, network.device), y

    def _network_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights = {NETWORK + k: v.cpu().numpy() for k, v in self._network.state_dict().items()}
        architecture = {k: None if callable(v) else v for k, v in self._architecture.items()}
        return weights, {"architecture": architecture}

    def _set_network(
        self, shape: tuple[int, ...], arrays: Arrays, plain: Mapping[str, Any]
    ) -> None:
        stored = plain["architecture"]
        own = stored["backbone"] or self.backbone  # None: a function, handed in again
        self._architecture = stored | {"backbone": own}
        network = self._make_network(shape, self._architecture)
        weights = {k.removeprefix(NETWORK): v for k, v in arrays.items() if k.startswith(NETWORK)}
        network.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
        network.eval()
        self._network = network
