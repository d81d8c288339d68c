"""An ensemble of weighted prototypes, several of a class, that grows with the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.distances import squared_distances
from cilf.core.parameters import Part
from cilf.core.types import Array
from cilf.nn.prototypes import class_means


@dataclass(frozen=True)
class PrototypeEnsemble:
    """Points in the embedding, each with the class it stands for and a weight.

    Its methods return new ensembles. An instance is assigned to the nearest prototype of its class,
    which is the running mean of its instances, or becomes a new one where none is within reach.

    >>> two_modes = torch.tensor([[0.0], [2.0], [9.0], [1.0]])
    >>> ensemble = PrototypeEnsemble.empty(1)
    >>> ensemble, own = ensemble.assign(two_modes, torch.zeros(4, dtype=torch.long), reach=5.0)
    >>> ensemble.centres[:, 0].tolist(), ensemble.weights.tolist(), own.tolist()
    ([1.0, 9.0], [3, 1], [0, 0, 1, 0])
    """

    centres: Tensor  # (m, d)
    labels: Tensor  # (m,) class positions
    weights: Tensor  # (m,) whole numbers

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def empty(cls, size: int, device: torch.device | None = None) -> PrototypeEnsemble:
        """No prototypes, in a space of this many dimensions."""
        none = torch.zeros(0, dtype=torch.long, device=device)
        return cls(torch.zeros(0, size, device=device), none, none)

    def assign(self, z: Tensor, y: Tensor, reach: float) -> tuple[PrototypeEnsemble, Tensor]:
        """Assign instances to prototypes; return the ensemble and the prototype of each instance.

        Instances with a prototype within reach are assigned at once. The others follow one by one,
        since each may be assigned to a prototype that another has made. The original method
        assigns one instance at a time.
        """
        nearest, own = self.nearest_own(z, y)
        near = nearest < reach
        ensemble = self._move_prototypes(z[near], own[near])
        for row in torch.nonzero(~near)[:, 0].tolist():
            ensemble, own[row] = ensemble._assign_one(z[row : row + 1], y[row : row + 1], reach)
        return ensemble, own

    def _assign_one(self, z: Tensor, y: Tensor, reach: float) -> tuple[PrototypeEnsemble, Tensor]:
        nearest, own = self.nearest_own(z, y)
        if bool(nearest < reach):
            return self._move_prototypes(z, own), own[0]
        return self.add_prototypes(z, y), own.new_tensor(len(self))

    def _move_prototypes(self, z: Tensor, own: Tensor) -> PrototypeEnsemble:
        """Move prototypes to the running means of their instances."""
        counts = torch.bincount(own, minlength=len(self))
        sums = (self.centres * self.weights[:, None]).index_add(0, own, z)
        weights = self.weights + counts
        centres = torch.where(counts[:, None] > 0, sums / weights[:, None], self.centres)
        return PrototypeEnsemble(centres, self.labels, weights)

    def add_prototypes(self, z: Tensor, y: Tensor) -> PrototypeEnsemble:
        """Add a prototype at each of these points."""
        return PrototypeEnsemble(
            torch.cat([self.centres, z]),
            torch.cat([self.labels, y]),
            torch.cat([self.weights, torch.ones_like(y)]),
        )

    def complete(self, z: Tensor, y: Tensor) -> PrototypeEnsemble:
        """Add a prototype at the mean of each class of these instances that has none."""
        missing = torch.unique(y[~torch.isin(y, self.labels)])
        means, _ = class_means(z, y, int(y.max()) + 1)
        return self.add_prototypes(means[missing], missing)

    def prune(self, most: int | None = None) -> PrototypeEnsemble:
        """Remove prototypes of one instance and halve the weights of the others, after an epoch.

        The heaviest prototype of a class always stays, and no more than the ``most`` heaviest.
        """
        rank = self._rank()
        kept = (rank == 0) | (self.weights > 1)
        if most is not None:
            kept &= rank < most
        halved = (self.weights[kept] + 1) // 2
        return PrototypeEnsemble(self.centres[kept], self.labels[kept], halved)

    def _rank(self) -> Tensor:
        """Number of prototypes of the same class that are heavier, or as heavy and older."""
        same = self.labels[:, None] == self.labels
        heavier = self.weights > self.weights[:, None]
        position = torch.arange(len(self), device=self.labels.device)
        older = (self.weights == self.weights[:, None]) & (position < position[:, None])
        return (same & (heavier | older)).sum(1)

    def nearest_own(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Distance to the nearest prototype of the same class (infinite if none), and which."""
        distances = self._distances(z).masked_fill(y[:, None] != self.labels, torch.inf)
        return _nearest(distances)

    def nearest(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Distance to the nearest prototype of all, and which it is."""
        return _nearest(self._distances(z))

    def _distances(self, z: Tensor) -> Tensor:
        """Distances in double precision, which do not depend on the batch."""
        return squared_distances(z.double(), self.centres.double()).sqrt()

    def arrays(self, name: str) -> dict[str, Array]:
        """The ensemble as it is stored under this name."""
        parts = {"centres": self.centres, "labels": self.labels, "weights": self.weights}
        return {f"{name}.{part}": values.cpu().numpy() for part, values in parts.items()}

    @classmethod
    def restore(
        cls, arrays: dict[str, Array], name: str, device: torch.device
    ) -> PrototypeEnsemble:
        """The ensemble that is stored under this name."""
        parts = (arrays[f"{name}.{part}"] for part in ("centres", "labels", "weights"))
        return cls(*(torch.from_numpy(values).to(device) for values in parts))


def _nearest(distances: Tensor) -> tuple[Tensor, Tensor]:
    if distances.shape[1] == 0:
        nobody = distances.new_zeros(len(distances), dtype=torch.long)
        return distances.new_full((len(distances),), torch.inf), nobody
    nearest, which = distances.min(1)
    return nearest, which


def distance_cross_entropy(z: Tensor, own: Tensor, centres: Tensor, gamma: float) -> Tensor:
    """DCE: -log of the odds exp(-gamma * squared distance) of the own prototype among all."""
    return F.cross_entropy(-gamma * squared_distances(z, centres), own)


def pairwise_loss(
    z: Tensor, points: Tensor, same: Tensor, *, margin: float, boundary: float, beta: float
) -> Tensor:
    """PW: instances nearer to the point of their class, farther from one of another class.

    The mean of g(margin - s * (boundary - squared distance)) with s = 1 where the point is of
    the ``same`` class and -1 elsewhere; g(v) = log(1 + exp(beta * v)) / beta is a soft hinge.
    """
    side = torch.where(same, 1.0, -1.0)
    squared = (z - points).square().sum(1)
    return F.softplus(margin - side * (boundary - squared), beta=beta).mean()


@dataclass(frozen=True, kw_only=True, repr=False)
class PrototypeSettings(Part):
    """The reach of prototypes, their number and their losses.

    Parameters
    ----------
    threshold : float, default=5.0
        T, the unit of distances. A prototype reaches 2 T far, class odds are
        exp(-squared distance / T), and the pairwise loss has the margin T around 2 T.
    pairwise : float, default=0.001
        Weight of the pairwise loss, which pulls an instance to its own prototype and to the nearest
        one, or pushes it from the nearest one if that is of another class.
    beta : float, default=1.0
        Sharpness of the soft hinge of the pairwise loss.
    max_prototypes : int, default=100
        Largest number of prototypes of a class that are kept after an epoch.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["threshold", "beta"], validation.in_range(1e-6)),
        "pairwise": validation.in_range(0.0),
        "max_prototypes": validation.whole(1),
    }

    threshold: float = 5.0
    pairwise: float = 0.001
    beta: float = 1.0
    max_prototypes: int = 100

    def loss(self, z: Tensor, own: Tensor, prototypes: PrototypeEnsemble) -> Tensor:
        """DCE, and PW with the own prototype and with the nearest of all."""
        centres, labels = prototypes.centres, prototypes.labels
        _, nearest = prototypes.nearest(z.detach())
        scale = {"margin": self.threshold, "boundary": 2 * self.threshold, "beta": self.beta}
        pull = pairwise_loss(z, centres[own], torch.ones_like(own, dtype=torch.bool), **scale)
        push = pairwise_loss(z, centres[nearest], labels[nearest] == labels[own], **scale)
        dce = distance_cross_entropy(z, own, centres, 1 / self.threshold)
        return dce + self.pairwise * (pull + push)
