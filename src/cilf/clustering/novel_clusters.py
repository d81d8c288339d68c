"""Novel classes among the instances that a one-class detector calls novel, by k-means."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.kmeans import kmeans
from cilf.clustering.silhouette import silhouette
from cilf.clustering.validity_curve import largest
from cilf.core.types import Array, Bools, Ints

Clustering = tuple[
    Ints, dict[int, float]
]  # cluster of each instance (-1 known), validity for each K


def cluster_novel(
    z: Tensor,
    is_novel: Bools,
    n_novel: int | None,
    *,
    k_max: int,
    least_silhouette: float,
    generator: torch.Generator,
) -> Clustering:
    """Cluster the novel instances alone, into ``n_novel`` classes or as many as fit best.

    A single class has no silhouette. More than one class is found only if the silhouette exceeds
    ``least_silhouette``.
    """
    cluster = np.full(len(z), -1, dtype=np.int64)
    rows = np.flatnonzero(is_novel)
    if len(rows) == 0 or n_novel == 0:
        return cluster, {}
    tried = range(2, min(k_max, len(rows) - 1) + 1) if n_novel is None else range(0)
    curve = {1: least_silhouette} if n_novel is None else {}
    for k in tried:
        curve[k] = silhouette(z[rows], kmeans(z[rows], k, generator))
    found = largest(curve) if n_novel is None else n_novel
    cluster[rows] = kmeans(z[rows], found, generator).numpy()
    return cluster, curve


def cluster_window(
    z: Tensor,
    is_novel: Bools,
    n_known: int,
    n_novel: int | None,
    *,
    k_max: int,
    generator: torch.Generator,
) -> Clustering:
    """Cluster known and novel instances together; clusters that are mostly novel count.

    The window is split into a cluster for each known class and K more. If ``n_novel`` is given, it
    is K, and the clusters with the largest share of novel instances are the novel ones. Otherwise
    K has the largest silhouette.
    """
    tried = range(k_max + 1) if n_novel is None else [n_novel]
    found = {k: kmeans(z, min(n_known + k, len(z)), generator) for k in tried}
    curve = {k: silhouette(z, found[k]) for k in tried} if n_novel is None else {}
    assignment = found[largest(curve) if n_novel is None else n_novel].numpy()
    shares = novel_shares(assignment, is_novel)
    wanted = int((shares > 0.5).sum()) if n_novel is None else n_novel
    position = np.full(len(shares), -1, dtype=np.int64)
    position[np.argsort(-shares, kind="stable")[:wanted]] = np.arange(wanted)
    return position[assignment], curve


def novel_shares(assignment: Array, is_novel: Bools) -> Array:
    """The share of each cluster's members that is novel.

    >>> novel_shares(np.array([0, 0, 1]), np.array([True, False, True])).tolist()
    [0.5, 1.0]
    """
    return np.bincount(assignment, weights=is_novel) / np.bincount(assignment)


def take_at_least(n: int, is_novel: Bools, novelty: Array) -> Bools:
    """The novel instances, or the ``n`` with the largest scores if fewer are novel.

    >>> take_at_least(2, np.array([False, False, True]), np.array([0.1, 0.3, 0.9])).tolist()
    [False, True, True]
    """
    if int(is_novel.sum()) >= n:
        return is_novel
    chosen = np.zeros_like(is_novel)
    chosen[np.argsort(-novelty, kind="stable")[:n]] = True
    return chosen
