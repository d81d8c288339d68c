"""Clustering of the instances that a one-class detector calls novel.

The paper compares one-class detectors in this way: the detector separates known from novel
instances, and k-means splits the novel instances into clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from cilf.clustering import novel_clusters
from cilf.clustering.evidence import counts_to_try
from cilf.core import Detection, validation
from cilf.core.parameters import Part
from cilf.core.types import Array, Bools, Floats, Ints
from cilf.errors import BadConfig
from cilf.learners.shared_space import OWN, SHARED, SPACES, SharedSpace


class ScoredWindow(NamedTuple):
    """The scores of a detector for the instances of a window."""

    novelty: Array  # (n,)
    is_novel: Bools  # (n,) whether the novelty is above the threshold
    label: Ints  # (n,) the most likely known class, as a position
    points: Floats  # (n, d) the space that is clustered


@dataclass(frozen=True, kw_only=True, repr=False)
class NovelClustering(Part):
    """The k-means that splits the novel instances of a window into clusters.

    Parameters
    ----------
    k_max : int or None, default=None
        Largest number of novel classes that is tried in one window. None takes a quarter of the
        root of the window's size, from 8 to 32. No more than one class for every 16 instances,
        plus one, is tried.
    least_silhouette : float, default=0.25
        Silhouette that a split must exceed; otherwise the novel instances are one cluster.
    cluster_all : bool, default=False
        Whether known and novel instances are clustered together. A cluster whose members are
        mostly novel is then a novel class.
    space : {"own", "shared"}, default="own"
        Space that is clustered. "own" is the vectors of the learner, split by the silhouette.
        "shared" clusters and counts the novel instances as CILF does, in its space, beside the
        centres of the known classes. An instance that is nearest to a known centre is then known.
        ``least_silhouette`` has no effect, and ``cluster_all`` is refused.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "k_max": validation.optional(validation.whole(1)),
        "least_silhouette": validation.in_range(-1.0, 1.0),
        "cluster_all": validation.flag,
        "space": validation.among(SPACES),
    }

    k_max: int | None = None
    least_silhouette: float = 0.25
    cluster_all: bool = False
    space: str = OWN

    def check_together(self, within: str) -> None:
        if self.cluster_all and self.space == SHARED:
            raise BadConfig(
                f"{within}cluster_all is True and {within}space is 'shared', which clusters novel "
                f"instances only: set {within}cluster_all=False, or {within}space='own'."
            )

    def detect(
        self,
        window: ScoredWindow,
        n_novel: int | None,
        classes: Array,
        rng: torch.Generator,
        shared: SharedSpace,
    ) -> Detection:
        """Cluster the novel instances of a window; ``classes`` are the known ones."""
        points = window.points
        if self.space == SHARED:
            marked = novel_clusters.take_at_least(n_novel or 0, window.is_novel, window.novelty)
            (cluster, curve), points = shared.cluster(marked, n_novel, self.k_max, rng)
        else:
            cluster, curve = self._cluster(window, n_novel, len(classes), rng)
        return Detection(
            novelty=window.novelty.astype(np.float32),
            label=classes[window.label],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=points,
        )

    def _cluster(
        self, window: ScoredWindow, n_novel: int | None, n_known: int, rng: torch.Generator
    ) -> novel_clusters.Clustering:
        points = torch.from_numpy(window.points)
        k_max = max(counts_to_try(self.k_max, len(points)))
        if self.cluster_all:
            return novel_clusters.cluster_window(
                points, window.is_novel, n_known, n_novel, k_max=k_max, generator=rng
            )
        novel = novel_clusters.take_at_least(n_novel or 0, window.is_novel, window.novelty)
        return novel_clusters.cluster_novel(
            points, novel, n_novel,
            k_max=k_max, least_silhouette=self.least_silhouette, generator=rng,
        )  # fmt: skip
