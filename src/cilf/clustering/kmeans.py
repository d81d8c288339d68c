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

    centres: Tensor  # (n_known + n_novel, d)
    assignment: Tensor  # (n,)
    n_known: int

    @property
    def novel(self) -> Tensor:
        """The centres of novel classes."""
        return self.centres[self.n_known :]

    def assign(self, points: Tensor, is_marked: Tensor | None = None) -> Tensor:
        """The nearest centre of each point; of points that are not marked, the nearest known one.

        >>> centres = torch.tensor([[0.0], [5.0]])
        >>> clusters = Clusters(centres, torch.tensor([0, 1]), n_known=1)
        >>> clusters.assign(torch.tensor([[4.0], [4.0]]), torch.tensor([True, False]))
        tensor([1, 0])
        """
        distances = squared_distances(points, self.centres)
        if is_marked is not None:
            distances[~is_marked, self.n_known :] = torch.inf
        return distances.argmin(1)


def semi_supervised_kmeans(
    z: Tensor,
    known: Tensor,
    n_novel: int,
    *,
    generator: torch.Generator,
    beta: float = 1.0,
    known_sizes: Tensor | None = None,
    weights: Tensor | None = None,
    n_starts: int = 10,
    n_steps: int = 30,
) -> Clusters:
    """Weighted k-means with ``n_novel`` centres beside those of the known classes.

    A known centre moves to beta * its prototype + (1 - beta) * the weighted mean of its
    instances. A novel centre moves to the weighted mean. The start with the least weighted inertia
    wins. With ``known_sizes``, beta has no effect: a prototype is the mean of so many labelled
    instances, which stay in their class, and its centre is the mean of them and its instances.
    """
    algorithm = _KMeans(z, known, beta, weights, n_steps, known_sizes)
    return algorithm.run(algorithm.draw_starts(n_novel, n_starts, generator))


def refine(
    z: Tensor,
    known: Tensor,
    novel: Tensor,
    *,
    beta: float = 1.0,
    weights: Tensor | None = None,
    n_steps: int = 30,
) -> Clusters:
    """The clusters that k-means converges to from these novel centres."""
    return _KMeans(z, known, beta, weights, n_steps).run(novel[None])


class _KMeans:
    """Lloyd's k-means of one set of instances, from several starts at once.

    Squared distances are compared without the square of the instance, which is the same for all
    centres. The nearest of the centres that never move (the known ones, at beta 1) is found once.
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
        fixed = beta == 1 and known_sizes is None
        self.anchors = known[:0] if fixed else known  # the known centres that move
        self.nearest_known = torch.full_like(self.squares, torch.inf)
        if len(known):
            self.nearest_known = self._relative_distances(known[None])[0].amin(0)
        self.nearest_fixed = self.nearest_known
        if len(self.anchors):
            self.nearest_fixed = torch.full_like(self.squares, torch.inf)

    def draw_starts(self, n: int, n_starts: int, generator: torch.Generator) -> Tensor:
        """k-means++: instances far from the known centres and from each other; (starts, n, d)."""
        starts = [self._draw_start(n, generator) for _ in range(n_starts)]
        return torch.stack([self.z[rows] for rows in starts])

    def _draw_start(self, n: int, generator: torch.Generator) -> list[int]:
        chosen: list[int] = []
        nearest = (self.nearest_known + self.squares).clamp_min(0)
        if not len(self.known):
            nearest = torch.ones_like(self.squares)
        for _ in range(n):
            odds = self._weigh(nearest).double().cpu()
            if float(odds.sum()) <= 0:
                odds = torch.ones_like(odds)
            chosen.append(int(torch.multinomial(odds, 1, generator=generator)))
            to_chosen = self._relative_distances(self.z[None, chosen[-1:]])[0, 0] + self.squares
            nearest = torch.minimum(nearest, to_chosen.clamp_min(0))
        return chosen

    def run(self, novel: Tensor) -> Clusters:
        """The clusters of least inertia from any of these starts; (starts, n_novel, d)."""
        centres = self.known
        if novel.shape[1] or len(self.anchors):
            starts = torch.cat([self.anchors.expand(len(novel), -1, -1), novel], 1)
            together = max(1, MOST_DISTANCES // (len(self.z) * starts.shape[1]))
            runs = [self._converge(group) for group in torch.split(starts, together)]
            inertia = torch.cat([run[1] for run in runs])
            moved = torch.cat([run[0] for run in runs])[inertia.argmin()]
            centres = torch.cat([self.known[len(self.anchors) :], moved])
        assignment = squared_distances(self.z, centres).argmin(1)
        return Clusters(centres, assignment, len(self.known))

    def _converge(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """The centres that each start ends with, and the inertia; converged runs drop out."""
        final = starts.clone()
        centres, running = starts, torch.arange(len(starts), device=starts.device)
        members, inertia = self._assign(starts)
        for _ in range(self.n_steps):
            centres = self._move(centres, members)
            reassigned, final_inertia = self._assign(centres)
            final[running], inertia[running] = centres, final_inertia
            moves = (reassigned != members).flatten(1).any(1)
            if not bool(moves.any()):
                break
            running, centres, members = running[moves], centres[moves], reassigned[moves]
        return final, inertia

    def _assign(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Which instances lie nearest to each moving centre, and the inertia of each run."""
        relative = self._relative_distances(centres)
        nearest = torch.minimum(relative.amin(1), self.nearest_fixed)
        inertia = self._weigh((nearest + self.squares).clamp_min(0)).sum(1)
        if self.known_sizes is not None:  # labelled instances: how far their mean lies off
            off = (centres[:, : len(self.known)] - self.known).square()
            inertia = inertia + (self.known_sizes * off).sum((1, 2))
        return relative == nearest[:, None], inertia

    def _move(self, centres: Tensor, members: Tensor) -> Tensor:
        """Move each centre to the mean of its members; anchors keep ``beta`` of their place."""
        members = self._weigh(members.to(self.z.dtype))
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

    def _relative_distances(self, centres: Tensor) -> Tensor:
        """Squared distances less the squares of the instances: (runs, centres, n)."""
        flat = centres.flatten(0, 1)
        squares = flat.square().sum(1)[:, None]
        return torch.addmm(squares, flat, self.z.T, alpha=-2).view(*centres.shape[:2], -1)

    def _weigh(self, values: Tensor) -> Tensor:
        return values if self.weights is None else values * self.weights


def kmeans(z: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """The cluster of each instance. No cluster is empty, even if instances coincide."""
    clusters = semi_supervised_kmeans(z, z[:0], n_clusters, generator=generator)
    return fill_empty(clusters.assignment, squared_distances(z, clusters.centres))


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
