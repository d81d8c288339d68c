"""A dictionary of image patches, learned without labels.

The method is that of Coates and Ng, "Learning feature representations with k-means". Patches of the
training images are normalised and whitened, and spherical k-means finds typical ones. An image is
described by the strength of each typical patch in each quarter. No labels are used, so the
description keeps what separates unknown classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

N_FILTERS = 128
MAX_SIDE = 32  # pixels a side; larger images are shrunk first
MAX_PATCH_SIDE = 6  # pixels a side, no more than half of the image
POSITIONS = 14  # patches along a side of an image, about
QUARTERS = 2  # a side, over which responses are averaged
N_SAMPLES = 40_000  # patches that a dictionary is made from
N_ROUNDS = 15  # of k-means
FLAT = 0.01  # variance, of a standardised image, that counts as noise
NOISE = 0.1  # added to the variances that whitening divides by
THRESHOLD = 0.25  # responses below it count as none
BATCH = 256  # images described at once


class PatchDictionary(nn.Module):
    """(n, c, h, w) standardised images -> (n, 1024) strengths of typical patches by quarter."""

    filters: Tensor
    offsets: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, height, width = shape
        self.size = min(height, MAX_SIDE), min(width, MAX_SIDE)
        self.patch = tuple(max(1, min(MAX_PATCH_SIDE, side // 2)) for side in self.size)
        self.stride = tuple(max(1, side // POSITIONS) for side in self.size)
        n_values = channels * self.patch[0] * self.patch[1]
        self.register_buffer("filters", torch.zeros(n_values, N_FILTERS))
        self.register_buffer("offsets", torch.zeros(N_FILTERS))
        self.register_buffer("mean", torch.zeros(2 * N_FILTERS * QUARTERS**2))
        self.register_buffer("deviation", torch.ones(2 * N_FILTERS * QUARTERS**2))

    @torch.no_grad()
    def learn(self, x: Tensor, generator: torch.Generator) -> None:
        """Find the typical patches of these images."""
        samples = self._sample(x, generator)
        centre = samples.mean(0)
        whitener = _whitener(samples - centre)
        typical = spherical_kmeans((samples - centre) @ whitener, N_FILTERS, generator)
        self.filters.copy_(whitener @ typical.T)
        self.offsets.copy_(centre @ self.filters)
        self.mean.zero_()
        self.deviation.fill_(1.0)
        strengths = self(x)
        self.mean.copy_(strengths.mean(0))
        self.deviation.copy_(strengths.std(0, correction=0) + 1e-3)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self._strengths(batch) for batch in torch.split(x, BATCH)])

    def _strengths(self, x: Tensor) -> Tensor:
        responses = self._patches(x) @ self.filters - self.offsets  # (n, positions, filters)
        signed = torch.cat([responses, -responses], 2).sub_(THRESHOLD).clamp_min_(0)
        across = [  # how often a patch fits in, down and across
            (side - patch) // stride + 1
            for side, patch, stride in zip(self.size, self.patch, self.stride, strict=True)
        ]
        grid = torch.unflatten(signed.transpose(1, 2), 2, across)
        pooled = F.adaptive_avg_pool2d(grid, QUARTERS)
        return (pooled.flatten(1) - self.mean) / self.deviation

    def _patches(self, x: Tensor) -> Tensor:
        """Patches of each image, of mean 0 and deviation 1: (n, positions, values)."""
        if tuple(x.shape[2:]) != self.size:
            x = F.adaptive_avg_pool2d(x, self.size)
        patches = F.unfold(x, self.patch, stride=self.stride).transpose(1, 2)
        centred = patches - patches.mean(2, keepdim=True)
        return centred / (centred.square().mean(2, keepdim=True) + FLAT).sqrt()

    def _sample(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Random patches, equally many of each image."""
        each = -(-N_SAMPLES // len(x))
        kept = []
        for batch in torch.split(x, BATCH):
            patches = self._patches(batch)
            places = torch.rand(patches.shape[:2], generator=generator).argsort(1)[:, :each]
            rows = torch.arange(len(batch))[:, None]
            kept.append(patches[rows.to(x.device), places.to(x.device)].flatten(0, 1))
        return torch.cat(kept)


def _whitener(centred: Tensor) -> Tensor:
    """The symmetric map after which the values of a patch are uncorrelated."""
    covariance = (centred.T @ centred / len(centred)).double()
    values, vectors = torch.linalg.eigh(covariance)
    whitener: Tensor = (vectors / (values + NOISE).sqrt()) @ vectors.T
    return whitener.to(centred.dtype)


def spherical_kmeans(points: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """``n`` unit vectors (n, d). A point belongs to a direction or to its opposite."""
    directions = F.normalize(torch.randn(n, points.shape[1], generator=generator), dim=1)
    directions = directions.to(points)
    for _ in range(N_ROUNDS):
        along = points @ directions.T
        nearest = along.abs().argmax(1)
        strength = along.gather(1, nearest[:, None])
        directions = directions.index_add(0, nearest, points * strength)
        directions = F.normalize(directions, dim=1)
    return directions
