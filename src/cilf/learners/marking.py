"""Learners that mark what is novel and leave it to k-means to split it into classes.

The frame in which the paper compares one-class detectors: a detector only says "known" or
"novel"; the marked instances are clustered, and queried labels come back as an update.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from cilf.clustering import novel_clusters
from cilf.core import Detection, validation
from cilf.core.random import torch_generator
from cilf.core.types import Array, Bools, Floats, Ints
from cilf.learners.base import Learner


class Marks(NamedTuple):
    """What a detector says about a window."""

    novelty: Array  # (n,)
    marked: Bools  # (n,) whether it calls the instance novel
    label: Ints  # (n,) the known class it would be, as a position
    points: Floats  # (n, d) where it lies, for the clustering


@dataclass(kw_only=True, repr=False, eq=False)
class MarkingLearner(Learner):
    """A detector of novel instances, and the clustering that makes classes of them.

    Args:
        seed: decides all that is left to chance.
        k_max: most novel classes looked for in one window.
        least_silhouette: splitting the novel instances must be worth more than this.
        cluster_all: cluster known and novel instances together, as the paper did for some; a
            cluster that is mostly marked is a novel class.
        memory_size: labelled instances that an update starts from, in all classes together;
            held-out ones, where a learner has them, come on top.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "k_max": validation.whole(1),
        "least_silhouette": validation.between(-1.0, 1.0),
        "cluster_all": validation.flag,
        "memory_size": validation.whole(0),
    }

    seed: int = 0
    k_max: int = 8
    least_silhouette: float = 0.25
    cluster_all: bool = False
    memory_size: int = 2000

    @abstractmethod
    def _mark(self, X: Array) -> Marks:
        """Known or novel; change nothing."""

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        seen = self._mark(X)
        cluster, curve = self._split(seen, n_novel)
        return Detection(
            novelty=seen.novelty.astype(np.float32),
            label=self.classes_[seen.label],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=seen.points,
        )

    def _split(self, seen: Marks, n_novel: int | None) -> novel_clusters.Clustering:
        draws = torch_generator(self.seed, "detect", self._n_updates)
        points = torch.from_numpy(seen.points)
        if self.cluster_all:
            return novel_clusters.cluster_window(
                points, seen.marked, len(self._classes), n_novel, k_max=self.k_max, generator=draws
            )
        marked = novel_clusters.take_at_least(n_novel or 0, seen.marked, seen.novelty)
        return novel_clusters.cluster_novel(
            points, marked, n_novel,
            k_max=self.k_max, least_silhouette=self.least_silhouette, generator=draws,
        )  # fmt: skip
