"""Splitting a cluster into several by k-means."""

from __future__ import annotations

import numpy as np

from cilf.core.random import derive_seed
from cilf.core.types import Floats, Ints
from cilf.errors import BadInput

N_STARTS = 8
SEED = 0


def split_members(embedding: Floats, members: Ints, n_clusters: int) -> list[list[int]]:
    """The members in ``n_clusters`` lists, the longest first.

    >>> z = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> split_members(z, np.arange(5), 2)
    [[2, 3, 4], [0, 1]]
    """
    from sklearn.cluster import KMeans

    points = embedding[members].astype(np.float64)
    if len(np.unique(points, axis=0)) < n_clusters:
        raise BadInput(f"n_clusters: the members have fewer than {n_clusters} different places.")
    seed = derive_seed(SEED, "split", len(members))
    assigned = KMeans(n_clusters, n_init=N_STARTS, random_state=seed).fit_predict(points)
    lists = [members[assigned == number].tolist() for number in range(n_clusters)]
    return sorted(filter(None, lists), key=len, reverse=True)
