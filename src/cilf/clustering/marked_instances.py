"""Novel classes among the instances that a detector marks as novel, beside the known classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import CountRule, Evidence, counts_to_try, measure_validity
from cilf.clustering.kmeans import Clusters, fill_empty, refine, semi_supervised_kmeans
from cilf.clustering.novel_clusters import Clustering
from cilf.core.distances import squared_distances

CURVE_SIZE = 1000  # instances that the validity curve is measured on, about


class MarkedWindow(NamedTuple):
    """A window of which a detector marks instances as novel, in the space that is clustered."""

    points: Tensor  # (n, d)
    is_marked: Tensor  # (n,)
    known: Tensor  # (n_known, d) centres of the known classes
    held_out: Tensor  # (m, d) known instances, held out of training if possible
    held_out_labels: Tensor  # (m,)
    held_out_is_marked: Tensor  # (m,) whether the detector is wrong about them

    def cluster(self, n_novel: int, generator: torch.Generator) -> Clusters:
        """k-means of the marked instances; the centres of the known classes stay."""
        marked = self.points[self.is_marked]
        return self._complete(
            semi_supervised_kmeans(marked, self.known, n_novel, generator=generator)
        )

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
    curve: Mapping[int, float] = {}
    if n_novel is None:
        clusters, curve = _count(window, k_max, rule, generator)
    else:
        clusters = window.cluster(n_novel, generator)
    nearest = clusters.assignment.clone()
    distances = squared_distances(window.points[marked], clusters.centres)
    nearest[marked] = fill_empty(nearest[marked], distances, clusters.n_known)
    return (nearest - clusters.n_known).clamp_min(-1).cpu().numpy(), dict(curve)


def _count(
    window: MarkedWindow, k_max: int | None, rule: CountRule, generator: torch.Generator
) -> tuple[Clusters, Mapping[int, float]]:
    """The clusters of as many novel classes as the rule finds, and the validity curve."""
    most = min(max(counts_to_try(k_max, len(window.points))), int(window.is_marked.sum()))
    counts = range(most + 1)
    clusterings = {k: window.cluster_whole(k, generator) for k in counts}
    points = dict.fromkeys(counts, window.points)
    evidence = Evidence(
        clusterings=clusterings,
        points=points,
        held_out=dict.fromkeys(counts, window.held_out),
        held_out_labels=window.held_out_labels,
        curve=measure_validity(points, clusterings, 1 + len(window.points) // CURVE_SIZE),
        generator=generator,
        is_marked=window.is_marked,
        held_out_is_marked=window.held_out_is_marked,
    )
    return window.refine(rule.find_centres(evidence)), evidence.curve
