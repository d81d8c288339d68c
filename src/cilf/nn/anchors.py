"""Weights that a network had, to hold it near them: what update methods remember by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Anchors:
    """Weights by name, and how much each of them matters.

    A network may have grown since: outputs that came later have no anchor.
    """

    weights: Mapping[str, Tensor]
    importance: Mapping[str, Tensor] | None = None  # None: all alike

    @classmethod
    def of(cls, network: nn.Module) -> Anchors:
        """The weights of this network as they are now."""
        return cls({name: weight.detach().clone() for name, weight in network.named_parameters()})

    def distance(self, network: nn.Module) -> Tensor:
        """Sum of the squared distances of all anchored weights, by importance.

        >>> layer = nn.Linear(2, 1)
        >>> anchors = Anchors.of(layer)
        >>> with torch.no_grad():
        ...     layer.weight += 3.0
        >>> round(anchors.distance(layer).item())
        18
        """
        terms = []
        for name, weight in network.named_parameters():
            if name in self.weights:
                anchor = self.weights[name]
                moved = (weight[tuple(slice(n) for n in anchor.shape)] - anchor).square()
                if self.importance is not None:
                    moved = moved * self.importance[name]
                terms.append(moved.sum())
        return torch.stack(terms).sum()
