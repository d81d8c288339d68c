"""Where a window is clustered: in the embedding, alone or beside what the backbone sees.

An embedding trained on known classes throws away what tells new ones apart; the features one
layer earlier still have some of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Space:
    """Joins embeddings and features, each divided by its scale; without ``features``, the
    embedding alone."""

    embedding: float = 1.0
    features: float | None = None

    @classmethod
    def fitted(cls, features: Tensor, embedding: Tensor) -> Space:
        """A space in which both parts spread equally over these instances."""
        return cls(_spread(embedding), _spread(features))

    def join(self, features: Tensor, embedding: Tensor) -> Tensor:
        """Points of the space: (n, f) and (n, d) -> (n, d + f), or (n, d)."""
        scaled = embedding / self.embedding
        return scaled if self.features is None else torch.cat([scaled, features / self.features], 1)

    def embeddings(self, points: Tensor, size: int) -> Tensor:
        """The embedding that points of the space stand for; it has this size."""
        return points[:, :size] * self.embedding


def _spread(x: Tensor) -> float:
    """Root mean squared distance from the mean; 1 if there is none."""
    spread = float((x - x.mean(0)).square().sum(1).mean().sqrt())
    return spread if spread > 0 else 1.0
