"""Clustering: k-means in which some centres belong to known classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.core.distances import squared_distances

MOST_DISTANCES = 2**22  # of k-means held at once: 16 MB, and a few times that beside them


@dataclass(frozen=True)
class Clusters:
    """Centres, known classes first, and the centre of each instance."""

    centres: Tensor  # (n_known + n_free, d)
    assignment: Tensor  # (n,)
    n_known: int

    @property
    def free(self) -> Tensor:
        """The centres of novel classes."""
        return self.centres[self.n_known :]


def semi_supervised_kmeans(
    z: Tensor,
    known: Tensor,
    n_free: int,
    *,
    generator: torch.Generator,
    beta: float = 1.0,
    known_sizes: Tensor | None = None,
    weights: Tensor | None = None,
    n_starts: int = 10,
    n_steps: int = 30,
) -> Clusters:
    """Weighted k-means with ``n_free`` centres beside those of the known classes.

    A known centre moves to beta * its prototype + (1 - beta) * the weighted mean of its
    instances, a free one to the weighted mean; the start with the least weighted inertia wins.
    With ``known_sizes``, beta does not count: a prototype is the mean of so many labelled
    instances, which stay in their class, and its centre is the mean of them and its instances.
    """
    kmeans = _KMeans(z, known, beta, weights, n_steps, known_sizes)
    return kmeans.best(kmeans.spread(n_free, n_starts, generator))


def settled(
    z: Tensor,
    known: Tensor,
    free: Tensor,
    *,
    beta: float = 1.0,
    weights: Tensor | None = None,
    n_steps: int = 30,
) -> Clusters:
    """The clusters that k-means settles in from these free centres."""
    return _KMeans(z, known, beta, weights, n_steps).best(free[None])


class _KMeans:
    """Lloyd's k-means of one set of instances, from several starts at once.

    Squared distances are compared without the square of the instance, which is the same for all
    centres. What lies nearest among the centres that never move (the known ones, at beta 1) is
    found once.
    """

    def __init__(
        self,
        z: Tensor,
        known: Tensor,
        beta: float,
        weights: Tensor | None,
        n_steps: int,
        known_sizes: Tensor | None = None,
    ) -> None:
        self.z, self.known, self.beta, self.weights, self.n_steps = z, known, beta, weights, n_steps
        self.known_sizes = None if known_sizes is None else known_sizes.to(z)[:, None]
        self.squares = z.square().sum(1)
        stay = beta == 1 and known_sizes is None
        self.anchors = known[:0] if stay else known  # the known centres that move
        self.nearest_known = torch.full_like(self.squares, torch.inf)
        if len(known):
            self.nearest_known = self._rising(known[None])[0].amin(0)
        self.nearest_fixed = self.nearest_known
        if len(self.anchors):
            self.nearest_fixed = torch.full_like(self.squares, torch.inf)

    def spread(self, n: int, n_starts: int, generator: torch.Generator) -> Tensor:
        """k-means++: instances drawn far from the centres there are; (starts, n, d)."""
        starts = [self._spread_once(n, generator) for _ in range(n_starts)]
        return torch.stack([self.z[rows] for rows in starts])

    def _spread_once(self, n: int, generator: torch.Generator) -> list[int]:
        chosen: list[int] = []
        nearest = (self.nearest_known + self.squares).clamp_min(0)
        if not len(self.known):
            nearest = torch.ones_like(self.squares)
        for _ in range(n):
            odds = self._weighted(nearest).double().cpu()
            if float(odds.sum()) <= 0:
                odds = torch.ones_like(odds)
            chosen.append(int(torch.multinomial(odds, 1, generator=generator)))
            to_chosen = self._rising(self.z[None, chosen[-1:]])[0, 0] + self.squares
            nearest = torch.minimum(nearest, to_chosen.clamp_min(0))
        return chosen

    def best(self, free: Tensor) -> Clusters:
        """The clusters of least inertia from any of these starts; (starts, n_free, d)."""
        centres = self.known
        if free.shape[1] or len(self.anchors):
            starts = torch.cat([self.anchors.expand(len(free), -1, -1), free], 1)
            together = max(1, MOST_DISTANCES // (len(self.z) * starts.shape[1]))
            runs = [self._settle(group) for group in torch.split(starts, together)]
            inertia = torch.cat([run[1] for run in runs])
            moved = torch.cat([run[0] for run in runs])[inertia.argmin()]
            centres = torch.cat([self.known[len(self.anchors) :], moved])
        assignment = squared_distances(self.z, centres).argmin(1)
        return Clusters(centres, assignment, len(self.known))

    def _settle(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """The centres that each start ends with, and the inertia; settled runs drop out."""
        settled = starts.clone()
        centres, running = starts, torch.arange(len(starts), device=starts.device)
        members, inertia = self._members(starts)
        for _ in range(self.n_steps):
            centres = self._moved(centres, members)
            regrouped, settled_inertia = self._members(centres)
            settled[running], inertia[running] = centres, settled_inertia
            moves = (regrouped != members).flatten(1).any(1)
            if not bool(moves.any()):
                break
            running, centres, members = running[moves], centres[moves], regrouped[moves]
        return settled, inertia

    def _members(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Which instances lie nearest to each moving centre, and the inertia of each run."""
        rising = self._rising(centres)
        nearest = torch.minimum(rising.amin(1), self.nearest_fixed)
        inertia = self._weighted((nearest + self.squares).clamp_min(0)).sum(1)
        if self.known_sizes is not None:  # labelled instances: how far their mean lies off
            off = (centres[:, : len(self.known)] - self.known).square()
            inertia = inertia + (self.known_sizes * off).sum((1, 2))
        return rising == nearest[:, None], inertia

    def _moved(self, centres: Tensor, members: Tensor) -> Tensor:
        """Each centre at the mean of its members; anchors stay ``beta`` where they were."""
        members = self._weighted(members.to(self.z.dtype))
        mass = members.sum(2, keepdim=True)  # (runs, centres, 1)
        means = (members.flatten(0, 1) @ self.z).view_as(centres) / torch.where(mass > 0, mass, 1)
        n_anchors = len(self.anchors)
        old = torch.cat([self.anchors.expand(len(centres), -1, -1), centres[:, n_anchors:]], 1)
        if self.known_sizes is None:
            means[:, :n_anchors].lerp_(old[:, :n_anchors], self.beta)
        else:
            labelled = self.known_sizes / (self.known_sizes + mass[:, :n_anchors])
            means[:, :n_anchors].lerp_(old[:, :n_anchors], labelled)
        return torch.where(mass > 0, means, old)

    def _rising(self, centres: Tensor) -> Tensor:
        """Squared distances less the squares of the instances: (runs, centres, n)."""
        flat = centres.flatten(0, 1)
        squares = flat.square().sum(1)[:, None]
        return torch.addmm(squares, flat, self.z.T, alpha=-2).view(*centres.shape[:2], -1)

    def _weighted(self, values: Tensor) -> Tensor:
        return values if self.weights is None else values * self.weights


def fill_empty(assignment: Tensor, distances: Tensor, n_known: int = 0) -> Tensor:
    """Give each empty novel cluster the instance that lies farthest from its own centre.

    ``distances`` are those to all centres, the ``n_known`` known classes first; a known class
    may lose all its instances, a novel one keeps its last.
    """
    assignment = assignment.clone()
    n_clusters = distances.shape[1]
    for label in range(n_known, n_clusters):
        sizes = torch.bincount(assignment, minlength=n_clusters)
        if sizes[label] == 0:
            own = distances.gather(1, assignment[:, None])[:, 0]
            last = (sizes[assignment] < 2) & (assignment >= n_known)
            assignment[own.masked_fill(last, -1.0).argmax()] = label
    return assignment
