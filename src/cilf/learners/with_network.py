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
from cilf.nn import pretrained
from cilf.nn.backbones import Factory
from cilf.nn.memory import Memory
from cilf.nn.network import Network, as_tensor, make_network, resolve_device
from cilf.nn.training import Training

NETWORK = "network."  # before the name of each of its weights in a file


@dataclass(kw_only=True, repr=False, eq=False)
class WithNetwork:
    """Parameters of training, and a network that is made from them; beside :class:`Learner`.

    Parameters
    ----------
    seed : int, default=0
        Seed of everything that is random.
    device : str, default="auto"
        Device of the network: "auto", "cpu", "cuda", ...
    backbone : str or callable, default="auto"
        Network that turns an instance into features; ``docs/methods/cilf.md`` lists them.
    width : int or None, default=None
        Number of channels (or units) of the backbone's first layer. None is its own default.
    epochs : int, default=20
        Number of passes over the data in the initial training.
    update_epochs : int, default=15
        Number of passes over the data in an update.
    training : Training
        Optimiser and batches; see :class:`cilf.nn.training.Training`.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["epochs", "update_epochs"], validation.whole(0)),
    }

    seed: int = 0
    device: str = "auto"
    backbone: str | Factory = "auto"
    width: int | None = None
    epochs: int = 20
    update_epochs: int = 15
    training: Training = Training()

    _architecture: dict[str, Any] = field(init=False)  # parameters may change after fitting
    _network: Network = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return pretrained.chosen(self.backbone, X)

    def _wanted_architecture(self, **more: Any) -> dict[str, Any]:
        return {"backbone": self.backbone, "width": self.width} | more

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        device = resolve_device(self.device)
        return make_network(instance_shape=shape, seed=self.seed, device=device, **architecture)

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
