"""The space that a window is clustered in, made of several views of its instances.

The views together have many directions that do not matter: those in which neither known data nor
the window vary, and those in which instances of *one* known class vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.core.distances import squared_distances
from cilf.nn.prototypes import class_means

DIRECT_FACTOR = 4  # times the wanted directions: up to so many dimensions, all are computed
N_ITERATIONS = 4  # of the subspace iteration; it then holds 0.9998 of the main directions


@dataclass(frozen=True)
class Space:
    """An affine map from the views of an instance to the point that is clustered."""

    scales: tuple[float, ...]  # what each view is divided by
    origin: Tensor  # (d,) of the concatenated views
    axes: Tensor  # (d, m)

    @classmethod
    def fit(
        cls,
        known: Sequence[Tensor],
        labels: Tensor,
        window: Sequence[Tensor],
        centres: Sequence[Tensor],
        *,
        size: int = 64,
        whitening: float = 0.5,
    ) -> Space:
        """The space for a window, from the views of it and of labelled known instances.

        The views are scaled to equal spread and concatenated. The ``size`` main directions are kept
        of the known instances and of the deviations of the window from the nearest ``centres`` of
        the known classes. So the space shows what is novel in the window, whatever proportions the
        known classes have in it. Distances are then measured in deviations within the known
        classes: ``whitening`` of 0 leaves them as they are, 1 trusts the covariance wholly.
        """
        scales = tuple(_spread(view) for view in (known if len(labels) else window))
        points, seen = _concatenate(known, scales), _concatenate(window, scales)
        origin = (points if len(labels) else seen).mean(0)
        beyond = seen - origin
        if len(labels):
            beyond = _deviate(seen, _concatenate(centres, scales))
        axes = _main_directions(torch.cat([points - origin, beyond]), size)
        within = _within_classes((points - origin) @ axes, labels)
        return cls(scales, origin, axes @ _whitener(within, whitening))

    def transform(self, views: Sequence[Tensor]) -> Tensor:
        """Points of the space: views of shape (n, d), (n, f), ... -> (n, m)."""
        return (_concatenate(views, self.scales) - self.origin) @ self.axes


def _concatenate(views: Sequence[Tensor], scales: Sequence[float]) -> Tensor:
    return torch.cat([view / scale for view, scale in zip(views, scales, strict=True)], 1)


def _deviate(points: Tensor, centres: Tensor) -> Tensor:
    """Each point as seen from the nearest centre."""
    return points - centres[squared_distances(points, centres).argmin(1)]


def _spread(x: Tensor) -> float:
    """Root mean squared distance from the mean; 1 if there is none."""
    spread = float((x - x.mean(0)).square().sum(1).mean().sqrt())
    return spread if spread > 0 else 1.0


def _main_directions(centred: Tensor, size: int) -> Tensor:
    """The directions of largest variance, as columns.

    If there are many dimensions, subspace iteration computes only the main directions.
    """
    if centred.shape[1] > DIRECT_FACTOR * size:
        block = _main_block(centred, 2 * size)
        return block @ _main_directions(centred @ block, size)
    _, vectors = torch.linalg.eigh(_covariance(centred))  # in ascending order
    main: Tensor = vectors.flip(1)[:, :size].to(centred.dtype)
    return main


def _main_block(centred: Tensor, size: int) -> Tensor:
    """Orthogonal directions, as columns, among which the main ones are."""
    some = torch.linspace(0, len(centred) - 1, min(size, len(centred)), device=centred.device)
    block: Tensor = torch.linalg.qr(centred[some.long()].T).Q
    for _ in range(N_ITERATIONS):
        block = torch.linalg.qr(centred.T @ (centred @ block)).Q
    return block


def _within_classes(points: Tensor, labels: Tensor) -> Tensor:
    """Covariance of instances around the means of their classes; a sphere if there are none."""
    if len(labels) == 0:
        return torch.eye(points.shape[1], dtype=torch.float64, device=points.device)
    means, _ = class_means(points, labels, int(labels.max()) + 1)
    return _covariance(points - means[labels])


def _covariance(centred: Tensor) -> Tensor:
    doubled = centred.double()
    return doubled.T @ doubled / len(doubled)


def _whitener(within: Tensor, whitening: float) -> Tensor:
    """The map after which the covariance, shrunk towards a sphere, is the identity."""
    sphere = torch.eye(len(within), dtype=within.dtype, device=within.device)
    mean_variance = within.diagonal().mean().clamp_min(1e-12)
    values, vectors = torch.linalg.eigh(
        whitening * within + (1 - whitening) * mean_variance * sphere
    )
    smallest = 1e-6 * mean_variance
    scaling: Tensor = (vectors / values.clamp_min(smallest).sqrt()).float()
    return scaling
