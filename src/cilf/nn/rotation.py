"""A task that needs no labels: tell by how much an image was turned.

Training on known classes alone throws away what tells new ones apart. To see which way is up, the
features have to know about the shape of things, whatever their class.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core.random import isolated_torch, torch_generator
from cilf.nn.network import Network


class RotationTask(nn.Module):
    """A linear layer on a network's features that tells turns of the image apart.

    Quarter turns for square images, half turns for others.
    """

    def __init__(self, network: Network, x: Tensor, *, weight: float, seed: int) -> None:
        super().__init__()
        self.weight, self.draws = weight, torch_generator(seed, "rotation")
        self.step = 1 if x.shape[2] == x.shape[3] else 2  # in quarter turns
        with isolated_torch(seed, "rotation head"):
            self.head = nn.Linear(network.head.in_features, 4 // self.step)
        self.to(network.device)

    def turned(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of these images, each turned at random, and by how many turns."""
        n_turns = self.head.out_features
        turns = torch.randint(n_turns, (len(x),), generator=self.draws).to(x.device)
        return turned(x, turns * self.step), turns

    def forward(self, features: Tensor, turns: Tensor) -> Tensor:
        """Weighted cross entropy of the turns, from the features of turned images."""
        return self.weight * F.cross_entropy(self.head(features), turns)


def turned(x: Tensor, quarters: Tensor) -> Tensor:
    """Each image of (n, c, h, w) by its own number of quarter turns."""
    copies = x.float().clone()
    for quarter in set(quarters.tolist()):
        chosen = quarters == quarter
        copies[chosen] = copies[chosen].rot90(quarter, dims=(2, 3))
    return copies
