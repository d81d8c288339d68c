"""Readouts: how the known classes are told from the views of an instance.

Each gives every instance a score for every class, and the largest decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core.distances import squared_distances
from cilf.core.types import Array
from cilf.nn.network import to_numpy

SHRINKAGE = 0.5  # of the covariance within classes towards a sphere
N_UNITS = 1024  # of the random layer
RIDGE_WEIGHT = 1.0  # of the penalty, in mean squares of a unit
STATISTICS = ("origin", "scale", "gram", "products")  # of the ridge regression
BLOCK = 4096  # instances that pass through the random layer at once


class Readout(Protocol):
    """Scores of the known classes."""

    def score(self, views: Sequence[Tensor]) -> Tensor:
        """The score of each class for each instance: (n, c)."""


@dataclass(frozen=True)
class NearestPrototype:
    """The nearest prototype in the embedding decides, as in the paper."""

    prototypes: Tensor  # (c, d)

    def score(self, views: Sequence[Tensor]) -> Tensor:
        return -squared_distances(views[0], self.prototypes)


@dataclass(frozen=True)
class Discriminant:
    """Linear discriminant analysis of all views, with a shrunk covariance."""

    scales: Tensor  # (n_views,) what each view is divided by
    weights: Tensor  # (d, c)
    offsets: Tensor  # (c,)

    @classmethod
    def fit(
        cls, views: Sequence[Tensor], labels: Tensor, centres: Sequence[Tensor]
    ) -> Discriminant:
        """From labelled instances and the centre of each class, both in each view.

        Classes are taken to be equally frequent. Without an instance the covariance is a sphere.
        """
        scales = torch.stack([_spread(view) for view in views])
        means = _join(centres, scales).double()
        deviations = _join(views, scales).double() - means[labels]
        variance = deviations.square().mean() if len(labels) else means.new_zeros(())
        sphere = SHRINKAGE * variance if float(variance) > 0 else torch.ones_like(variance)
        weights = _solve(deviations * np.sqrt((1 - SHRINKAGE) / max(len(labels), 1)), sphere, means)
        offsets = -(means.T * weights).sum(0) / 2
        return cls(scales, weights.float(), offsets.float())

    def score(self, views: Sequence[Tensor]) -> Tensor:
        return _join(views, self.scales) @ self.weights + self.offsets

    def arrays(self) -> dict[str, Array]:
        """The weights, for a file."""
        return _to_arrays(self, ("scales", "weights", "offsets"))

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], device: torch.device) -> Discriminant:
        """The readout of these arrays."""
        return cls(**_to_tensors(arrays, ("scales", "weights", "offsets"), device))


@dataclass(frozen=True)
class RandomRidge:
    """Ridge regression on a random ReLU layer over the inputs, which no training changes.

    Sums over all labelled instances so far determine it, so that it is the same in whatever order
    they came after the first fit. A new class adds a column to ``products`` and leaves the others
    as they are.
    """

    signs: Tensor  # (d, u) weights of the layer, 1 or -1
    origin: Tensor  # (d,) that inputs are measured from
    scale: Tensor  # (1,) what they are divided by
    gram: Tensor  # (u, u) sum of products of the units
    products: Tensor  # (u, c) sum of the units over the instances of each class

    @classmethod
    def start(cls, inputs: Tensor, rng: np.random.Generator) -> RandomRidge:
        """A layer for inputs like these, which has learned nothing."""
        drawn = rng.integers(0, 2, (inputs.shape[1], N_UNITS))
        signs = torch.from_numpy(2 * drawn - 1).to(inputs)
        gram, products = inputs.new_zeros(N_UNITS, N_UNITS), inputs.new_zeros(N_UNITS, 0)
        return cls(signs, inputs.mean(0), _spread(inputs).view(1), gram, products)

    def add(self, inputs: Tensor, labels: Tensor, n_classes: int) -> RandomRidge:
        """The readout with these instances, which it has not seen before."""
        gram = self.gram.double()
        products = F.pad(self.products, (0, n_classes - self.products.shape[1])).double()
        for rows in torch.split(torch.arange(len(inputs), device=inputs.device), BLOCK):
            units = self._activate(inputs[rows]).double()
            gram = gram + units.T @ units
            products.index_add_(1, labels[rows], units.T)
        return replace(self, gram=gram.float(), products=products.float())

    def score(self, views: Sequence[Tensor]) -> Tensor:
        blocks = torch.split(views[-1], BLOCK)
        return torch.cat([self._activate(block) @ self._weights for block in blocks])

    @cached_property
    def _weights(self) -> Tensor:
        gram = self.gram.double()
        penalty = RIDGE_WEIGHT * gram.diagonal().mean().clamp_min(1e-12)
        gram.diagonal().add_(penalty)
        weights: Tensor = torch.linalg.solve(gram, self.products.double()).float()
        return weights

    def _activate(self, inputs: Tensor) -> Tensor:
        return torch.relu((inputs - self.origin) / self.scale @ self.signs)

    def arrays(self) -> dict[str, Array]:
        """The statistics, for a file. A sign takes one bit."""
        signs = np.packbits(self.signs.cpu().numpy() > 0, axis=0)
        return _to_arrays(self, STATISTICS) | {"signs": signs}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], device: torch.device) -> RandomRidge:
        """The readout of these arrays."""
        bits = np.unpackbits(arrays["signs"], axis=0, count=len(arrays["origin"]))
        signs = torch.from_numpy(2 * bits.astype(np.float32) - 1).to(device)
        return cls(signs=signs, **_to_tensors(arrays, STATISTICS, device))


def _solve(rows: Tensor, sphere: Tensor, means: Tensor) -> Tensor:
    """(rows' rows + sphere * identity)^-1 means'.

    With fewer rows than dimensions only a matrix of the size of the rows is solved.

    >>> rows, means = torch.tensor([[1.0, 2.0, 0.0]]), torch.eye(3)
    >>> inverse = _solve(rows, torch.tensor(0.5), means)
    >>> torch.allclose(inverse @ (rows.T @ rows + 0.5 * torch.eye(3)), torch.eye(3), atol=1e-5)
    True
    """
    n, d = rows.shape
    if n < d:  # by the Woodbury identity
        inner = rows @ rows.T
        inner.diagonal().add_(sphere)
        within_rows = torch.linalg.solve(inner, rows @ means.T)
        found: Tensor = (means.T - rows.T @ within_rows) / sphere
        return found
    outer = rows.T @ rows
    outer.diagonal().add_(sphere)
    weights: Tensor = torch.linalg.solve(outer, means.T)
    return weights


def measure_accuracy(readout: Readout, views: Sequence[Tensor], labels: Tensor) -> float:
    """The mean accuracy over the classes that have instances."""
    right = (readout.score(views).argmax(1) == labels).double()
    counts = torch.bincount(labels)
    hits = torch.bincount(labels, right)
    return float((hits[counts > 0] / counts[counts > 0]).mean())


def _to_arrays(readout: Readout, names: Sequence[str]) -> dict[str, Array]:
    return {name: to_numpy(getattr(readout, name)) for name in names}


def _to_tensors(
    arrays: Mapping[str, Array], names: Sequence[str], device: torch.device
) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(arrays[name])).to(device) for name in names}


def _join(views: Sequence[Tensor], scales: Tensor) -> Tensor:
    return torch.cat([view / scale for view, scale in zip(views, scales, strict=True)], 1)


def _spread(x: Tensor) -> Tensor:
    """Root mean squared distance from the mean; 1 if there is none."""
    if len(x) == 0:
        return x.new_ones(())
    spread = (x - x.mean(0)).square().sum(1).mean().sqrt()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
