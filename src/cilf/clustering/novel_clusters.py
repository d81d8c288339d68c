"""From "novel or not" to novel classes: k-means on what a one-class detector marked."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cilf.clustering import class_count
from cilf.clustering.kmeans import fill_empty, semi_supervised_kmeans
from cilf.clustering.silhouette import silhouette
from cilf.core.distances import squared_distances
from cilf.core.types import Array, Bools, Ints

Split = tuple[Ints, dict[int, float]]  # cluster of each instance (-1 known), validity for each K


def split_marked(
    z: Tensor,
    marked: Bools,
    n_novel: int | None,
    *,
    k_max: int,
    least_silhouette: float,
    generator: torch.Generator,
) -> Split:
    """Cluster the marked instances alone, into ``n_novel`` classes or as many as fit best.

    One class has no silhouette: it is credited with ``least_silhouette``, so that more are
    found only where splitting is worth more than that.
    """
    cluster = np.full(len(z), -1, dtype=np.int64)
    rows = np.flatnonzero(marked)
    if len(rows) == 0 or n_novel == 0:
        return cluster, {}
    tried = range(2, min(k_max, len(rows) - 1) + 1) if n_novel is None else range(0)
    curve = {1: least_silhouette} if n_novel is None else {}
    for k in tried:
        curve[k] = silhouette(z[rows], kmeans(z[rows], k, generator))
    found = class_count.largest(curve) if n_novel is None else n_novel
    cluster[rows] = kmeans(z[rows], found, generator).numpy()
    return cluster, curve


def split_all(
    z: Tensor,
    marked: Bools,
    n_known: int,
    n_novel: int | None,
    *,
    k_max: int,
    generator: torch.Generator,
) -> Split:
    """Cluster known and novel instances together; clusters that are mostly marked are novel.

    The window is cut into as many clusters as there are known classes and K more: ``n_novel``
    if given (the clusters with the largest marked share are then the novel ones), else the K
    with the largest silhouette.
    """
    tried = range(k_max + 1) if n_novel is None else [n_novel]
    cuts = {k: kmeans(z, min(n_known + k, len(z)), generator) for k in tried}
    curve = {k: silhouette(z, cut) for k, cut in cuts.items()} if n_novel is None else {}
    assignment = cuts[class_count.largest(curve) if n_novel is None else n_novel].numpy()
    shares = marked_shares(assignment, marked)
    wanted = int((shares > 0.5).sum()) if n_novel is None else n_novel
    position = np.full(len(shares), -1, dtype=np.int64)
    position[np.argsort(-shares, kind="stable")[:wanted]] = np.arange(wanted)
    return position[assignment], curve


def marked_shares(assignment: Array, marked: Bools) -> Array:
    """The share of each cluster's members that is marked.

    >>> marked_shares(np.array([0, 0, 1]), np.array([True, False, True])).tolist()
    [0.5, 1.0]
    """
    return np.bincount(assignment, weights=marked) / np.bincount(assignment)


def at_least(n: int, marked: Bools, novelty: Array) -> Bools:
    """The marked instances or, when they are fewer than ``n``, the ``n`` most novel ones.

    >>> at_least(2, np.array([False, False, True]), np.array([0.1, 0.3, 0.9])).tolist()
    [False, True, True]
    """
    if int(marked.sum()) >= n:
        return marked
    chosen = np.zeros_like(marked)
    chosen[np.argsort(-novelty, kind="stable")[:n]] = True
    return chosen


def kmeans(z: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Cluster of each instance; none stays empty, not even where instances coincide."""
    clusters = semi_supervised_kmeans(z, z[:0], n_clusters, generator=generator)
    return fill_empty(clusters.assignment, squared_distances(z, clusters.centres))
