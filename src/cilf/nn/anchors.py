"""Anchors: earlier weights of a network that an update holds the network near."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cilf.core.types import Array

LARGEST = 1e30  # strength of a pull: it ends at the anchor of all that matters


@dataclass(frozen=True)
class Anchors:
    """Weights by name, and how much each of them matters.

    Outputs that the network got later have no anchor.
    """

    weights: Mapping[str, Tensor]
    importance: Mapping[str, Tensor] | None = None  # None: all alike

    @classmethod
    def of(cls, network: nn.Module, importance: Mapping[str, Tensor] | None = None) -> Anchors:
        """The weights of this network as they are now."""
        weights = {name: weight.detach().clone() for name, weight in network.named_parameters()}
        return cls(weights, importance)

    def distance(self, network: nn.Module) -> Tensor:
        """Sum of the squared distances of all weights from their anchors, weighted by importance.

        >>> layer = nn.Linear(2, 1)
        >>> anchors = Anchors.of(layer)
        >>> with torch.no_grad():
        ...     layer.weight += 3.0
        >>> round(anchors.distance(layer).item())
        18
        """
        terms = [
            ((weight - anchor).square() * importance).sum()
            for weight, anchor, importance in self._pairs(network)
        ]
        return torch.stack(terms).sum()

    @torch.no_grad()
    def pull(self, network: nn.Module, strength: float) -> None:
        """Move the weights towards their anchors by a proximal step.

        The step minimises ``strength * distance`` plus half the squared length of the step. A step
        along the gradient overshoots if ``2 * strength`` is above 1, and diverges above 2. The
        proximal step never goes beyond the anchor.

        >>> layer = nn.Linear(2, 1, bias=False)
        >>> anchors = Anchors({"weight": torch.tensor([[1.0, 1.0]])})
        >>> _ = nn.init.constant_(layer.weight, 4.0)
        >>> anchors.pull(layer, strength=1.0)
        >>> layer.weight.tolist()
        [[2.0, 2.0]]
        """
        for weight, anchor, importance in self._pairs(network):
            # Of the way. In float32 a larger strength would be inf, and inf * 0 is no number.
            share = 1 / (1 + 1 / (2 * min(strength, LARGEST) * importance))
            weight.lerp_(anchor, share)

    def make_pull(self, network: nn.Module, weight: float) -> Callable[[float], None]:
        """The step of training that pulls a network to the anchors, with this weight."""
        return lambda step: self.pull(network, weight * step)

    def combine(self, later: Anchors) -> Anchors:
        """Anchors whose distance is the sum of both distances, but for a constant.

        Each anchor is the mean of both, weighted by importance. The network of the later anchors
        may have grown.

        >>> one, three = (
        ...     Anchors({"w": torch.tensor([at])}, {"w": torch.tensor([matters])})
        ...     for at, matters in [(2.0, 1.0), (6.0, 3.0)]
        ... )
        >>> both = one.combine(three)
        >>> both.weights["w"].item(), both.importance["w"].item()
        (5.0, 4.0)
        """
        sums = self.renew(later).importance or {}
        weights = {}
        for name, anchor in later.weights.items():
            before = _pad_like(self.weights.get(name), anchor)
            share = later._importance(name) / sums[name]  # 0 / 0 where nothing has mattered yet
            weights[name] = before.lerp(anchor, torch.where(sums[name] > 0, share, 1.0))
        return Anchors(weights, sums)

    def renew(self, later: Anchors, decay: float = 1.0) -> Anchors:
        """The ``later`` anchors. The earlier importance is added, times ``decay``."""
        sums = {}
        for name, anchor in later.weights.items():
            before = self._importance(name) if name in self.weights else None
            sums[name] = decay * _pad_like(before, anchor) + later._importance(name)
        return Anchors(later.weights, sums)

    def arrays(self, name: str) -> dict[str, Array]:
        """The anchors as they are stored under this name."""
        kinds = {"weights": self.weights, "importance": self.importance or {}}
        return {
            f"{name}.{kind}.{key}": value.cpu().numpy()
            for kind, values in kinds.items()
            for key, value in values.items()
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], name: str, device: torch.device) -> Anchors:
        """The anchors that are stored under this name."""

        def of_kind(kind: str) -> dict[str, Tensor]:
            start = f"{name}.{kind}."
            return {
                key.removeprefix(start): torch.from_numpy(np.array(value)).to(device)
                for key, value in arrays.items()
                if key.startswith(start)
            }

        return cls(of_kind("weights"), of_kind("importance") or None)

    def _pairs(self, network: nn.Module) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each anchored part of the network's weights, its anchor, and how much it matters."""
        for name, weight in network.named_parameters():
            if name in self.weights:
                anchor = self.weights[name]
                yield weight[_corner(anchor)], anchor, self._importance(name)

    def _importance(self, name: str) -> Tensor:
        if self.importance is None:
            return torch.ones_like(self.weights[name])
        return self.importance[name]


def _corner(anchor: Tensor) -> tuple[slice, ...]:
    """The place of the anchored weights in a tensor that may have grown."""
    return tuple(slice(n) for n in anchor.shape)


def _pad_like(values: Tensor | None, like: Tensor) -> Tensor:
    """These values in a tensor of that shape, and zeros where it has grown."""
    grown = torch.zeros_like(like)
    if values is not None:
        grown[_corner(values)] = values
    return grown
