"""The input and the interface of the rules for the number of novel classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.clustering.silhouette import silhouette
from cilf.core.parameters import Part

INSTANCES_PER_CLASS = 16  # of a window; more classes than this allows are not tried
LEAST_K_MAX, MOST_K_MAX = 8, 32  # of a window whose size decides the largest number to try


@dataclass(frozen=True)
class Evidence:
    """Clusterings of one window, by the number of novel centres: 0, 1, 2, ...

    Points may lie in another space for each number.
    """

    clusterings: Mapping[int, Clusters]
    points: Mapping[int, Tensor]  # of the window, (n, d)
    held_out: Mapping[int, Tensor]  # of known instances that no training saw, (m, d)
    held_out_labels: Tensor  # (m,)
    curve: Mapping[int, float]  # validity of each clustering
    generator: torch.Generator
    is_marked: Tensor | None = None  # (n,) what a detector calls novel; None: all
    held_out_is_marked: Tensor | None = None  # (m,)


class CountRule(Part, ABC):
    """A rule for the number of novel classes in a window."""

    @abstractmethod
    def find_centres(self, evidence: Evidence) -> Tensor:
        """Centres of the novel classes: (n_novel, d)."""


def counts_to_try(k_max: int | None, n_instances: int) -> range:
    """The numbers of novel classes that are tried in a window.

    Without ``k_max`` the largest number follows the window: a quarter of the root of its size,
    from 8 to 32.

    >>> counts_to_try(8, 40), counts_to_try(None, 3000)
    (range(0, 4), range(0, 15))
    """
    if k_max is None:
        k_max = min(max(LEAST_K_MAX, round(n_instances**0.5 / 4)), MOST_K_MAX)
    return range(min(k_max, 1 + n_instances // INSTANCES_PER_CLASS) + 1)


def measure_validity(
    points: Mapping[int, Tensor], clusterings: Mapping[int, Clusters], step: int = 1
) -> dict[int, float]:
    """Mean silhouette of each clustering, of every ``step``-th instance."""
    return {
        k: silhouette(points[k][::step], clusters.assignment[::step])
        for k, clusters in clusterings.items()
    }
