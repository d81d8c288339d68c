"""Whom to ask about: how many of the instances believed novel, and which ones."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from cilf.core import Detection, validation
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig

Query = int | float | str
"""A budget for each novel cluster (int), a share of the novel instances (float), or "self"."""

SELF = "self"  # as a query: nobody is asked

Choice = Callable[[Detection, Ints, int], Ints]  # (_, rows of a cluster, how many) -> which rows


def choose_queries(
    detection: Detection, query: Query, *, strategy: str = "random", seed: int, window: int
) -> Ints:
    """The rows of a window whose labels to ask for, sorted.

    Args:
        detection: what is believed about the window.
        query: a float is a share of the instances believed novel, 0.0 to 1.0; an int is a budget
            for each novel cluster, 0 and up. ``"self"`` asks for none.
        strategy: "random" takes anyone; "representative" those in the middle of their cluster
            and then some all over it; "uncertain" those nearly as close to another class;
            "mixed" half of each.
        seed: decides what is left to chance.
        window: the window's index, so that windows differ.

    A share takes at least one instance, if any is believed novel and the share is above 0; every
    strategy but "random" takes it of each cluster, and so at least one there.

    >>> found = Detection(
    ...     novelty=np.ones(6), label=np.zeros(6, int), cluster=np.array([-1, 0, 0, 0, 1, 1]),
    ...     n_novel=2, curve={}, embedding=np.array([[9.], [0.], [1.], [2.], [5.], [5.]]))
    >>> choose_queries(found, 1, strategy="representative", seed=0, window=1).tolist()
    [2, 4]
    >>> len(choose_queries(found, 1.0, seed=0, window=1))
    5
    """
    check_query(query)
    validation.one_of("strategy", strategy, STRATEGIES)
    if isinstance(query, str):
        return np.empty(0, dtype=np.int64)
    if strategy == RANDOM:
        return _at_random(detection, query, generator(seed, "query", window))
    chosen = [_of(members, detection, query, strategy) for members in _clusters(detection)]
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *chosen]))


def _of(members: Ints, detection: Detection, query: float, strategy: str) -> Ints:
    wanted = _wanted(query, len(members))
    if wanted == len(members):  # there is nothing to choose
        return members
    return BY_PLACE[strategy](detection, members, wanted)


def check_query(query: Any) -> None:
    """Refuse what is neither a share, nor a budget, nor "self"."""
    if query == SELF and isinstance(query, str):
        return
    fits = isinstance(query, numbers.Real) and not isinstance(query, bool)
    most = math.inf if isinstance(query, numbers.Integral) else 1.0
    if not (fits and 0 <= query <= most):
        raise BadConfig(
            f"query is {query!r}: give a share from 0.0 to 1.0, a whole number of labels for each "
            f"novel cluster, or {SELF!r}."
        )


def _wanted(query: float, n: int) -> int:
    """How many of ``n`` instances to ask about."""
    if isinstance(query, numbers.Integral):
        return min(int(query), n)
    return math.ceil(query * n - 1e-9)  # 0.1 * 30 is a little more than 3


def _clusters(detection: Detection) -> list[Ints]:
    """The rows of each novel cluster that has any."""
    found = np.unique(detection.cluster[detection.is_novel])
    return [np.flatnonzero(detection.cluster == cluster) for cluster in found]


def _at_random(detection: Detection, query: float, draws: np.random.Generator) -> Ints:
    shuffled = draws.permutation(np.flatnonzero(detection.is_novel))
    if not isinstance(query, numbers.Integral):
        return np.sort(shuffled[: _wanted(query, len(shuffled))])
    place = np.zeros(len(shuffled), dtype=np.int64)  # of each among those of its cluster
    cluster = detection.cluster[shuffled]
    for found in np.unique(cluster):
        place[cluster == found] = np.arange(np.sum(cluster == found))
    return np.sort(shuffled[place < query])


# ----------------------------------------------------------------- which ones


def _representative(detection: Detection, members: Ints, wanted: int) -> Ints:
    """The member nearest to the middle, then again and again one far from those chosen.

    How far counts less the farther out a member lies, or the outliers would come first.
    """
    points = detection.embedding[members].astype(np.float64)
    from_middle = _squared(points, points.mean(axis=0))
    weight = 1 / (1e-12 + from_middle.mean() + from_middle) ** 2
    chosen: list[int] = []
    from_chosen = np.full(len(members), np.inf)
    score = -from_middle
    for _ in range(wanted):
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        from_chosen = np.minimum(from_chosen, _squared(points, points[chosen[-1]]))
        score = from_chosen * weight
    return members[chosen]


def _uncertain(detection: Detection, members: Ints, wanted: int) -> Ints:
    """Those nearly as near to the middle of another class, known or novel, as to their own."""
    order = np.lexsort((detection.novelty[members], _margins(detection, members)))
    return members[order[:wanted]]


def _mixed(detection: Detection, members: Ints, wanted: int) -> Ints:
    """The representative half first; the larger one, if there are halves of two sizes."""
    typical = _representative(detection, members, (wanted + 1) // 2)
    others = _uncertain(detection, members, len(members))
    rest = others[~np.isin(others, typical)]
    return np.concatenate([typical, rest[: wanted - len(typical)]])


RANDOM = "random"  # the paper's: needs no look at where instances lie
BY_PLACE: dict[str, Choice] = {
    "representative": _representative,
    "uncertain": _uncertain,
    "mixed": _mixed,
}
STRATEGIES = (RANDOM, *BY_PLACE)


def _margins(detection: Detection, members: Ints) -> Array:
    """How much farther each member is from the nearest other class than from its own."""
    points = detection.embedding.astype(np.float64)
    own = _squared(points[members], points[members].mean(axis=0))
    others = [
        _squared(points[members], points[rows].mean(axis=0))
        for rows in _groups(detection)
        if rows[0] not in members
    ]
    nearest = np.min(others, axis=0) if others else np.zeros(len(members))
    return np.asarray(np.sqrt(nearest) - np.sqrt(own))


def _groups(detection: Detection) -> list[Ints]:
    """The rows of each class in the window, as far as it is believed: known ones, and clusters."""
    known = ~detection.is_novel
    labels = np.unique(detection.label[known])
    return [
        *(np.flatnonzero(known & (detection.label == label)) for label in labels),
        *_clusters(detection),
    ]


def _squared(points: Array, centre: Array) -> Array:
    return np.asarray(((points - centre) ** 2).sum(axis=1))
