"""What a window is tuned on: its instances with pseudo-labels, and replayed ones with true labels.

The parts of Algorithm 2 that keep pseudo-labels, batches and centres in step while an embedding
is tuned. Rows of the window come first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.core.distances import squared_distances
from cilf.nn.prototypes import annealed, class_means


@dataclass
class PseudoLabelled:
    """A window that is clustered, and a memory that is replayed beside it (it may be empty)."""

    x: Tensor
    labels: Tensor
    n_window: int
    n_known: int

    @classmethod
    def of(cls, window: Tensor, clusters: Clusters, memory: Tensor, true: Tensor) -> PseudoLabelled:
        labels = torch.cat([clusters.assignment, true])
        return cls(torch.cat([window, memory]), labels, len(window), clusters.n_known)

    def batch(self, easy: Tensor, size: int, replay: int, draws: torch.Generator) -> Tensor:
        """``size`` of the easy rows of the window, and ``replay`` of the memory's."""
        memory = torch.arange(self.n_window, len(self.x))
        rows = torch.cat([_drawn(easy, size, draws), _drawn(memory, replay, draws)])
        return rows.to(self.x.device)

    def followed(self, points: Tensor, centres: Tensor, beta: float) -> Tensor:
        """Where the centres are now: known ones by the memory, if it is replayed."""
        n, n_known = self.n_window, self.n_known
        means, counts = class_means(points[:n], self.labels[:n], len(centres))
        free = annealed(centres[n_known:], means[n_known:], counts[n_known:], 0.0)
        if len(points) > n:
            kept, kept_counts = class_means(points[n:], self.labels[n:], n_known)
            return torch.cat([annealed(centres[:n_known], kept, kept_counts, 0.0), free])
        known = annealed(centres[:n_known], means[:n_known], counts[:n_known], beta)
        return torch.cat([known, free])

    def relabelled(self, points: Tensor, centres: Tensor) -> Clusters:
        """Give the window the labels of the nearest centres."""
        window = points[: self.n_window]
        self.labels[: self.n_window] = squared_distances(window, centres).argmin(1)
        return Clusters(centres, self.labels[: self.n_window].clone(), self.n_known)


def _drawn(rows: Tensor, n: int, draws: torch.Generator) -> Tensor:
    """``n`` of these rows, with replacement; none of none."""
    rows = rows.cpu()
    return rows[torch.randint(len(rows), (n,), generator=draws)] if len(rows) else rows
