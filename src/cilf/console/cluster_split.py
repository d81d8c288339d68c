"""A group that holds several kinds, parted by where its members lie."""

from __future__ import annotations

import numpy as np

from cilf.core.random import generator
from cilf.core.types import Floats, Ints
from cilf.errors import BadInput

N_STARTS = 8


def parted(embedding: Floats, members: Ints, n_parts: int, *, seed: int) -> list[list[int]]:
    """The members in so many parts, the largest first: the best k-means of several starts.

    >>> z = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> parted(z, np.arange(5), 2, seed=0)
    [[2, 3, 4], [0, 1]]
    """
    from scipy.cluster.vq import ClusterError, kmeans2

    points = embedding[members].astype(np.float64)
    if len(np.unique(points, axis=0)) < n_parts:
        raise BadInput(f"parts: the members do not differ enough to make {n_parts} of them.")
    draws = generator(seed, "parts", len(members))
    best, least = None, np.inf
    for _ in range(N_STARTS):
        try:
            centres, part = kmeans2(points, n_parts, minit="++", missing="raise", rng=draws)
        except ClusterError:  # a part without members: another start is better
            continue
        inertia = float(((points - centres[part]) ** 2).sum())
        if inertia < least:
            best, least = part, inertia
    if best is None:
        raise BadInput(f"parts: the members do not fall into {n_parts} parts: give fewer.")
    rows = [members[best == number].tolist() for number in range(n_parts)]
    return sorted((part for part in rows if part), key=len, reverse=True)
