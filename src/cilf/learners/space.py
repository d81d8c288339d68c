"""Where a window is clustered: in the embedding, alone or beside other views of an instance.

An embedding trained on known classes throws away what tells new ones apart; the features one
layer earlier still have some of it, and the input has all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Space:
    """Joins views of an instance, the embedding first, each divided by its scale."""

    scales: tuple[float, ...] = (1.0,)

    @classmethod
    def fitted(cls, views: Sequence[Tensor]) -> Space:
        """A space in which these views spread equally; the embedding alone stays as it is."""
        return cls(tuple(_spread(view) for view in views)) if len(views) > 1 else cls()

    def join(self, views: Sequence[Tensor]) -> Tensor:
        """Points of the space: views of shape (n, d), (n, f), ... -> (n, d + f + ...).

        Views beyond those the space was fitted to are left out.
        """
        return torch.cat([view / scale for view, scale in zip(views, self.scales, strict=False)], 1)

    def embeddings(self, points: Tensor, size: int) -> Tensor:
        """The embedding that points of the space stand for; it has this size."""
        return points[:, :size] * self.scales[0]


def _spread(x: Tensor) -> float:
    """Root mean squared distance from the mean; 1 if there is none."""
    spread = float((x - x.mean(0)).square().sum(1).mean().sqrt())
    return spread if spread > 0 else 1.0
