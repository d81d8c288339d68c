"""The input and the interface of the rules for the number of novel classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import Labelled
from cilf.clustering.silhouette import silhouette
from cilf.core.parameters import Part

INSTANCES_PER_CLASS = 16  # of a window; more classes than this allows are not tried
INSTANCES_PER_CENTRE = 8  # of a window; more novel centres than this allows are not tried
LEAST_K_MAX, MOST_K_MAX = 8, 32  # of a window whose size decides the largest number to try
FINE_COUNTS = (12, 16, 24, 32, 48, 64)  # numbers of novel centres beyond the first eight


@dataclass(frozen=True)
class Marks:
    """The labelled instances that a detector calls novel. Others are in known clusters."""

    memory: Tensor  # (m,)
    held_out: Tensor  # (h,)


@dataclass(frozen=True)
class Evidence:
    """Clusterings of one window, by the number of novel centres: 0, 1, 2, ...

    Points may lie in another space for each number.
    """

    clusterings: Mapping[int, Clusters]
    points: Mapping[int, Tensor]  # of the window, (n, d)
    memory: Mapping[int, Labelled]  # labelled instances that training saw; there may be none
    held_out: Mapping[int, Labelled]  # known instances that no training saw
    curve: Mapping[int, float]  # validity of each clustering
    generator: torch.Generator
    marks: Marks | None = None  # None: every instance may be novel

    def assign_labelled(self, k: int) -> tuple[Tensor, Tensor]:
        """The cluster and the label of each labelled instance, held out or not."""
        clusters, memory, held_out = self.clusterings[k], self.memory[k], self.held_out[k]
        marks = (None, None) if self.marks is None else (self.marks.memory, self.marks.held_out)
        assigned = [
            clusters.assign(labelled.points, is_marked)
            for labelled, is_marked in zip((memory, held_out), marks, strict=True)
        ]
        return torch.cat(assigned), torch.cat([memory.labels, held_out.labels])


class CountRule(Part, ABC):
    """A rule for the number of novel classes in a window."""

    @abstractmethod
    def find_centres(self, evidence: Evidence) -> Tensor:
        """Centres of the novel classes: (n_novel, d)."""

    def find(self, evidence: Evidence, n_novel: int | None) -> tuple[Tensor, Mapping[int, float]]:
        """Centres of the novel classes, and the probability of each number of them.

        If the number is given, ``evidence`` has a clustering with so many novel centres.
        """
        if n_novel is None:
            centres = self.find_centres(evidence)
        else:
            centres = evidence.clusterings[n_novel].novel
        return centres, {len(centres): 1.0}


def counts_to_try(k_max: int | None, n_instances: int) -> range:
    """The numbers of novel classes that are tried in a window, one after another.

    Without ``k_max`` the largest number follows the window: a quarter of the root of its size,
    from 8 to 32.

    >>> counts_to_try(8, 40), counts_to_try(None, 3000)
    (range(0, 4), range(0, 15))
    """
    if k_max is None:
        k_max = min(max(LEAST_K_MAX, round(n_instances**0.5 / 4)), MOST_K_MAX)
    return range(min(k_max, 1 + n_instances // INSTANCES_PER_CLASS) + 1)


def centres_to_try(k_max: int | None, n_instances: int) -> list[int]:
    """The numbers of novel centres that a window is clustered with, up to one for 8 instances.

    >>> centres_to_try(None, 100), centres_to_try(2, 100), centres_to_try(None, 1)
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 12], [0, 1, 2], [0, 1])
    """
    most = max(1, n_instances // INSTANCES_PER_CENTRE)
    most = most if k_max is None else min(most, k_max)
    return [k for k in (*range(LEAST_K_MAX + 1), *FINE_COUNTS) if k <= most]


def measure_validity(
    points: Mapping[int, Tensor], clusterings: Mapping[int, Clusters], step: int = 1
) -> dict[int, float]:
    """Mean silhouette of each clustering, of every ``step``-th instance."""
    return {
        k: silhouette(points[k][::step], clusters.assignment[::step])
        for k, clusters in clusterings.items()
    }
