"""Novel classes among the instances that a detector marks as novel, beside the known classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import (
    CountRule,
    Evidence,
    Marks,
    centres_to_try,
    measure_validity,
)
from cilf.clustering.kmeans import Clusters, fill_empty, refine, semi_supervised_kmeans
from cilf.clustering.novel_clusters import Clustering
from cilf.clustering.p_values import Labelled
from cilf.core.distances import squared_distances

CURVE_SIZE = 1000  # instances that the validity curve is measured on, about


class MarkedWindow(NamedTuple):
    """A window of which a detector marks instances as novel, in the space that is clustered."""

    points: Tensor  # (n, d)
    is_marked: Tensor  # (n,)
    known: Tensor  # (n_known, d) centres of the known classes
    memory: Labelled  # instances that training saw; there may be none
    memory_is_marked: Tensor  # (m,) whether the detector is wrong about them
    held_out: Labelled  # known instances, held out of training if possible
    held_out_is_marked: Tensor  # (h,)

    def cluster_whole(self, n_novel: int, generator: torch.Generator) -> Clusters:
        """k-means of the whole window, of which only marked instances may be in novel clusters.

        A novel centre need not lie among marked instances, so that few of them are split less.
        """
        return self._complete(
            semi_supervised_kmeans(self.points, self.known, n_novel, generator=generator)
        )

    def refine(self, novel: Tensor) -> Clusters:
        """The clusters that k-means of the marked instances converges to from these centres."""
        return self._complete(refine(self.points[self.is_marked], self.known, novel))

    def _complete(self, clusters: Clusters) -> Clusters:
        """The clusters of all instances: those that are not marked are in known ones."""
        return replace(clusters, assignment=clusters.assign(self.points, self.is_marked))


def cluster_marked(
    window: MarkedWindow,
    n_novel: int | None,
    *,
    k_max: int | None,
    rule: CountRule,
    generator: torch.Generator,
) -> Clustering:
    """Cluster the marked instances around the known centres and novel ones.

    An instance is known if it is not marked, or if a known centre is the nearest. The rule counts
    the novel classes unless ``n_novel`` is given. No novel cluster stays empty.
    """
    marked = window.is_marked
    if not bool(marked.any()):
        return np.full(len(marked), -1, dtype=np.int64), {}
    clusters, curve = _count(window, n_novel, k_max, rule, generator)
    nearest = clusters.assignment.clone()
    distances = squared_distances(window.points[marked], clusters.centres)
    nearest[marked] = fill_empty(nearest[marked], distances, clusters.n_known)
    return (nearest - clusters.n_known).clamp_min(-1).cpu().numpy(), dict(curve)


def _count(
    window: MarkedWindow,
    n_novel: int | None,
    k_max: int | None,
    rule: CountRule,
    generator: torch.Generator,
) -> tuple[Clusters, Mapping[int, float]]:
    """The clusters of as many novel classes as are given or found, and the validity curve."""
    n_marked = int(window.is_marked.sum())
    counts = [k for k in centres_to_try(k_max, len(window.points)) if k <= n_marked]
    if n_novel is not None and n_novel not in counts:
        counts.append(n_novel)
    clusterings = {k: window.cluster_whole(k, generator) for k in counts}
    points = dict.fromkeys(counts, window.points)
    step = 1 + len(window.points) // CURVE_SIZE
    evidence = Evidence(
        clusterings=clusterings,
        points=points,
        memory=dict.fromkeys(counts, window.memory),
        held_out=dict.fromkeys(counts, window.held_out),
        curve={} if n_novel is not None else measure_validity(points, clusterings, step),
        generator=generator,
        marks=Marks(window.memory_is_marked, window.held_out_is_marked),
    )
    centres, _ = rule.find(evidence, n_novel)
    return window.refine(centres), evidence.curve
