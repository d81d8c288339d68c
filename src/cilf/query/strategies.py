"""Strategies that choose the instances to query. ``STRATEGIES`` is their one table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cilf.core import Detection, validation
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.query.budget import Query, check_query, count_queries, is_budget

Strategy = Callable[[Detection, float, np.random.Generator], Ints]
"""(detection, share or budget, random generator) -> the rows to query, in any order."""

Choice = Callable[[Detection, Ints, int], Ints]
"""(detection, rows of one cluster, how many of them) -> the rows to query."""

RANDOM = "random"  # the paper's strategy


def choose_queries(
    detection: Detection, query: Query, *, strategy: str = RANDOM, seed: int, window: int
) -> Ints:
    """Choose the rows of a window whose labels to query, sorted.

    Parameters
    ----------
    detection : Detection
        Detection of the window.
    query : float, int or "self"
        A float is a share of the instances believed novel, from 0.0 to 1.0. An int is a budget for
        each novel cluster. "self" queries none.
    strategy : str, default="random"
        Name of a strategy of the table ``STRATEGIES``.
    seed : int
        Seed of the random choices.
    window : int
        Index of the window. It makes the random choices of windows differ.

    A share above 0 takes at least one instance, if any is believed novel. Every strategy but
    "random" takes the share of each cluster, and so at least one instance of each.

    >>> found = Detection(
    ...     novelty=np.ones(6), label=np.zeros(6, int), cluster=np.array([-1, 0, 0, 0, 1, 1]),
    ...     n_novel=2, curve={}, embedding=np.array([[9.], [0.], [1.], [2.], [5.], [5.]]))
    >>> choose_queries(found, 1, strategy="representative", seed=0, window=1).tolist()
    [2, 4]
    >>> len(choose_queries(found, 1.0, seed=0, window=1))
    5
    """
    check_query(query)
    choose = STRATEGIES[validation.one_of("strategy", strategy, STRATEGIES)]
    if isinstance(query, str):
        return np.empty(0, dtype=np.int64)
    return np.sort(choose(detection, query, generator(seed, "query", window)))


def choose_random(detection: Detection, query: float, rng: np.random.Generator) -> Ints:
    """Choose at random. A share is drawn from all novel instances together."""
    shuffled = rng.permutation(np.flatnonzero(detection.is_novel))
    if not is_budget(query):
        return shuffled[: count_queries(query, len(shuffled))]
    rank = np.zeros(len(shuffled), dtype=np.int64)  # of each among those of its cluster
    cluster = detection.cluster[shuffled]
    for found in np.unique(cluster):
        rank[cluster == found] = np.arange(np.sum(cluster == found))
    return shuffled[rank < query]


def in_each_cluster(choose: Choice) -> Strategy:
    """The strategy that chooses in each novel cluster by itself, without chance."""

    def choose_all(detection: Detection, query: float, _: np.random.Generator) -> Ints:
        chosen = [np.empty(0, dtype=np.int64)]
        for members in _clusters(detection):
            n = count_queries(query, len(members))
            chosen.append(members if n == len(members) else choose(detection, members, n))
        return np.concatenate(chosen)

    choose_all.__doc__ = choose.__doc__
    return choose_all


def choose_representative(detection: Detection, members: Ints, n: int) -> Ints:
    """Choose the member nearest to the middle of its cluster, then others all over the cluster.

    The distance to chosen members counts less for members far from the middle. Otherwise outliers
    would be chosen first.
    """
    points = detection.embedding[members].astype(np.float64)
    from_middle = _squared_distances(points, points.mean(axis=0))
    weight = 1 / (1e-12 + from_middle.mean() + from_middle) ** 2
    chosen: list[int] = []
    from_chosen = np.full(len(members), np.inf)
    score = -from_middle
    for _ in range(n):
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        from_chosen = np.minimum(from_chosen, _squared_distances(points, points[chosen[-1]]))
        score = from_chosen * weight
    return members[chosen]


def choose_uncertain(detection: Detection, members: Ints, n: int) -> Ints:
    """Choose members almost as near to another class, known or novel, as to their own cluster."""
    order = np.lexsort((detection.novelty[members], _margins(detection, members)))
    return members[order[:n]]


def choose_mixed(detection: Detection, members: Ints, n: int) -> Ints:
    """Choose the larger half as "representative" does and the rest as "uncertain" does."""
    typical = choose_representative(detection, members, (n + 1) // 2)
    others = choose_uncertain(detection, members, len(members))
    rest = others[~np.isin(others, typical)]
    return np.concatenate([typical, rest[: n - len(typical)]])


STRATEGIES: dict[str, Strategy] = {
    RANDOM: choose_random,
    "representative": in_each_cluster(choose_representative),
    "uncertain": in_each_cluster(choose_uncertain),
    "mixed": in_each_cluster(choose_mixed),
}


def _clusters(detection: Detection) -> list[Ints]:
    """The rows of each novel cluster that has any."""
    found = np.unique(detection.cluster[detection.is_novel])
    return [np.flatnonzero(detection.cluster == cluster) for cluster in found]


def _margins(detection: Detection, members: Ints) -> Array:
    """Distance of each member to the nearest other class minus distance to its own."""
    points = detection.embedding.astype(np.float64)
    own = _squared_distances(points[members], points[members].mean(axis=0))
    others = [
        _squared_distances(points[members], points[rows].mean(axis=0))
        for rows in _believed_classes(detection)
        if rows[0] not in members
    ]
    nearest = np.min(others, axis=0) if others else np.zeros(len(members))
    return np.asarray(np.sqrt(nearest) - np.sqrt(own))


def _believed_classes(detection: Detection) -> list[Ints]:
    """The rows of each class that the detection sees: known classes, then novel clusters."""
    known = ~detection.is_novel
    labels = np.unique(detection.label[known])
    return [
        *(np.flatnonzero(known & (detection.label == label)) for label in labels),
        *_clusters(detection),
    ]


def _squared_distances(points: Array, centre: Array) -> Array:
    return np.asarray(((points - centre) ** 2).sum(axis=1))
