"""Readouts: how the known classes are told from the views of an instance.

Each gives every instance a score for every class, and the largest decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core.distances import squared_distances
from cilf.core.types import Array, Floats
from cilf.nn.network import to_numpy

SHRINKAGE = 0.5  # of the covariance within classes towards a sphere
MIN_UNITS, MAX_UNITS = 256, 2048  # of the random layer
UNITS_EACH = 2  # for each instance of the first fit, between these numbers
RIDGE_WEIGHT = 0.5  # of the ridge, in mean variances of a unit within classes
ROUNDING = 1e-6  # of the trace of a Gram matrix in float32: what its rounding amounts to at most
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

    kept: ClassVar[tuple[str, ...]] = ("scales", "weights", "offsets")  # in a file

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
        weights = weights.float().contiguous()  # as a file gives it back: sums are rounded alike
        return cls(scales, weights, offsets.float())

    def score(self, views: Sequence[Tensor]) -> Tensor:
        return _join(views, self.scales) @ self.weights + self.offsets

    def arrays(self) -> dict[str, Array]:
        """The weights, for a file."""
        return _to_arrays(self, self.kept)

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], device: torch.device) -> Discriminant:
        """The readout of these arrays."""
        return cls(**_to_tensors(arrays, cls.kept, device))


@dataclass(frozen=True)
class RandomRidge:
    """Discriminant analysis with a ridge, on a random ReLU layer over the inputs.

    No training changes the layer. Sums over all labelled instances so far determine the readout,
    so that it is the same in whatever order they came after the first fit. A new class adds a
    column to ``products`` and leaves the others as they are. Classes are taken to be equally
    frequent, however many instances they had. A class without any is never the best.
    """

    kept: ClassVar[tuple[str, ...]] = ("origin", "scale", "gram", "products", "counts")

    signs: Tensor  # (d, u) weights of the layer, 1 or -1
    origin: Tensor  # (d,) that inputs are measured from
    scale: Tensor  # (1,) what they are divided by
    gram: Tensor  # (u, u) sum of products of the units
    products: Tensor  # (u, c) sum of the units over the instances of each class
    counts: Tensor  # (c,) number of instances of each class

    @classmethod
    def start(cls, inputs: Tensor, rng: np.random.Generator) -> RandomRidge:
        """A layer for inputs like these, which has learned nothing."""
        n_units = min(max(MIN_UNITS, UNITS_EACH * len(inputs)), MAX_UNITS)
        drawn = rng.integers(0, 2, (inputs.shape[1], n_units))
        signs = torch.from_numpy(2 * drawn - 1).to(inputs)
        gram, products = inputs.new_zeros(n_units, n_units), inputs.new_zeros(n_units, 0)
        origin, scale = inputs.mean(0), _spread(inputs).view(1)
        return cls(signs, origin, scale, gram, products, inputs.new_zeros(0))

    def add(self, inputs: Tensor, labels: Tensor, n_classes: int) -> RandomRidge:
        """The readout with these instances, which it has not seen before."""
        gram, more = self.gram.double(), n_classes - len(self.counts)
        products = F.pad(self.products, (0, more)).double()
        counts = F.pad(self.counts, (0, more)) + torch.bincount(labels, minlength=n_classes)
        for rows in torch.split(torch.arange(len(inputs), device=inputs.device), BLOCK):
            units = self._activate(inputs[rows])
            gram += (units.T @ units).double()
            products.index_add_(1, labels[rows], units.T.double())
        return replace(self, gram=gram.float(), products=products.float(), counts=counts)

    def remove(self, inputs: Tensor, labels: Tensor) -> RandomRidge:
        """The readout without these instances, which it has seen under these labels."""
        units = self._activate(inputs).double()
        gram = self.gram.double() - units.T @ units
        products = self.products.double().index_add(1, labels, -units.T)
        counts = self.counts - torch.bincount(labels, minlength=len(self.counts))
        products = torch.where(counts > 0, products, torch.zeros_like(products))
        return replace(
            self, gram=gram.float(), products=products.float(), counts=counts.clamp_min(0)
        )

    def remove_class(self, label: int, inputs: Tensor) -> RandomRidge:
        """The readout without the instances of a class, which keeps its place.

        ``inputs`` are those of its instances that are still there. If they are all, the result is
        that of never having seen them. If not, the class is taken to spread like all classes
        together, so that the covariance within the others stays as it is.
        """
        count = float(self.counts[label])
        if len(inputs) == int(count):
            return self.remove(inputs, torch.full_like(inputs[:, 0], label, dtype=torch.int64))
        gram, products = self.gram.double(), self.products.double().clone()
        means = products / self.counts.double().clamp_min(1)
        within = (gram - means @ products.T) / self.counts.sum().clamp_min(1)
        gram = gram - count * (torch.outer(means[:, label], means[:, label]) + within)
        products[:, label] = 0
        counts = self.counts.clone()
        counts[label] = 0
        return replace(self, gram=gram.float(), products=products.float(), counts=counts)

    def reassign(self, positions: Tensor, n_classes: int) -> RandomRidge:
        """The readout after classes got new positions. Those of one position are one class.

        A class of position -1 leaves. Its instances have been removed.
        """
        stays = positions >= 0
        to = positions[stays]
        products = self.products.new_zeros(len(self.products), n_classes)
        products.index_add_(1, to, self.products[:, stays])
        counts = self.counts.new_zeros(n_classes).index_add_(0, to, self.counts[stays])
        return replace(self, products=products, counts=counts)

    @property
    def has_all_classes(self) -> bool:
        """Whether it has seen an instance of every class."""
        return bool((self.counts > 0).all())

    def score(self, views: Sequence[Tensor]) -> Tensor:
        weights, offsets = self._solution
        blocks = torch.split(views[-1], BLOCK)
        return torch.cat([self._activate(block) @ weights for block in blocks]) + offsets

    @cached_property
    def _solution(self) -> tuple[Tensor, Tensor]:
        """The weights (u, c) and the offset of each class (c,)."""
        counts, products = self.counts.double(), self.products.double()
        means = products / counts.clamp_min(1)
        within = (self.gram.double() - means @ products.T) / counts.sum().clamp_min(1)
        rounding = ROUNDING * self.gram.trace() / counts.sum().clamp_min(1)
        ridge = (RIDGE_WEIGHT * within.diagonal().mean()).maximum(rounding)
        within.diagonal().add_(ridge if float(ridge) > 0 else 1.0)
        weights = torch.cholesky_solve(means, torch.linalg.cholesky(within))
        offsets = torch.where(counts > 0, -(means * weights).sum(0) / 2, -torch.inf)
        return weights.float(), offsets.float()

    def _activate(self, inputs: Tensor) -> Tensor:
        return torch.relu((inputs - self.origin) / self.scale @ self.signs)

    def arrays(self) -> dict[str, Array]:
        """The statistics, for a file. A sign takes one bit."""
        signs = np.packbits(self.signs.cpu().numpy() > 0, axis=0)
        return _to_arrays(self, self.kept) | {"signs": signs}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], device: torch.device) -> RandomRidge:
        """The readout of these arrays."""
        bits = np.unpackbits(arrays["signs"], axis=0, count=len(arrays["origin"]))
        signs = torch.from_numpy(2 * bits.astype(np.float32) - 1).to(device)
        return cls(signs=signs, **_to_tensors(arrays, cls.kept, device))


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


def weigh_scores(scores: Sequence[Tensor], labels: Tensor) -> list[float]:
    """The weights with which the scores of several readouts are added.

    The sums are taken for log-odds, and the weights minimise the cross entropy of the labels. Their
    logarithms have a standard normal prior, for scores in units of their deviation between
    classes. So all readouts count alike if there are few labels.
    """
    from scipy.optimize import minimize  # a quarter of a second to import
    from scipy.special import logsumexp

    raw = np.stack([score.cpu().numpy().astype(np.float64) for score in scores])  # (r, n, c)
    units = raw.std(2).mean(1)
    units[units == 0] = 1.0
    raw /= units[:, None, None]
    y = labels.cpu().numpy()
    right = raw[:, np.arange(len(y)), y]  # (r, n)

    def measure(log_weights: Floats) -> tuple[float, Floats]:
        """The loss, and its gradient."""
        weights = np.exp(log_weights)
        odds = np.tensordot(weights, raw, 1)
        log_sums = logsumexp(odds, axis=1)
        expected = (raw * np.exp(odds - log_sums[:, None])).sum(2)
        loss = (log_sums - weights @ right).sum() + log_weights @ log_weights / 2
        return loss, weights * (expected - right).sum(1) + log_weights

    found = minimize(measure, np.zeros(len(scores)), jac=True, method="L-BFGS-B")
    weights: list[float] = (np.exp(found.x) / units).tolist()
    return weights


def find_scale(scores: Tensor, labels: Tensor) -> float:
    """The factor with which scores, (n, c), are log-odds: it minimises the cross entropy of labels.

    >>> find_scale(torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), torch.tensor([0, 1, 1])) < 1
    True
    """
    finite = torch.isfinite(scores)
    lowest = scores[finite].min() if bool(finite.any()) else scores.new_zeros(())
    return weigh_scores([torch.where(finite, scores, lowest)], labels)[0]


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
    spread = (x - x.mean(0)).square_().sum(1).mean().sqrt()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
