"""Values of a row of numbers that are unusual among instances of the known classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cilf.core.types import Array, Floats

MIN_UNUSUAL = 3.0  # spreads away from the nearest class
USUAL_WIDTH = 2.0  # spreads on each side of the median that are shown as usual
MOST_UNUSUAL = 99.0  # a column that never varied has no spread
TO_DEVIATION = 1.4826  # median absolute deviation of a normal distribution to its deviation
LEAST_SHARE = 0.05  # of a column's spread over all classes, for a class in which it hardly varies


class KnownValues(NamedTuple):
    """The usual values of each known class in each column."""

    medians: Floats  # (c, d)
    spreads: Floats  # (c, d) robust deviations; 0 where a column never varies


class UnusualValue(NamedTuple):
    """A value far from those of every known class."""

    column: str
    value: float
    distance: float  # from the nearest class, in its spreads
    low: float  # the usual range of that class
    high: float


def summarize_known(X: Array, y: Array) -> KnownValues:
    """Summarize the values of each class, (n, d), by its median and its robust deviation.

    >>> summarize_known(np.array([[1.0], [2.0], [3.0]]), np.array(["a"] * 3)).medians.tolist()
    [[2.0]]
    """
    X = X.astype(np.float64)
    overall = X.std(axis=0) if len(X) else np.zeros(X.shape[1])
    medians, spreads = [], []
    for label in np.unique(y):
        members = X[y == label]
        median = np.median(members, axis=0)
        spread = TO_DEVIATION * np.median(np.abs(members - median), axis=0)
        medians.append(median)
        spreads.append(np.maximum(spread, LEAST_SHARE * overall))
    shape = (-1, X.shape[1])
    return KnownValues(
        np.array(medians, dtype=np.float32).reshape(shape),
        np.array(spreads, dtype=np.float32).reshape(shape),
    )


def list_unusual(
    x: Array, known: KnownValues, columns: Sequence[str], *, most: int
) -> list[UnusualValue]:
    """List the most unusual values of one instance, (d,), the most unusual first.

    The distance of a value is that from the median of the class in which it is least unusual.

    >>> known = KnownValues(np.array([[0.0, 5.0], [9.0, 5.0]]), np.ones((2, 2)))
    >>> [found.column for found in list_unusual(np.array([9.5, -3.0]), known, "ab", most=2)]
    ['b']
    """
    if len(known.medians) == 0:
        return []
    distances = _measure(x, known)
    nearest, least = distances.argmin(axis=0), distances.min(axis=0)
    order = np.argsort(-least, kind="stable")[:most]
    return [
        _describe(float(x[i]), float(least[i]), known, int(nearest[i]), int(i), columns[i])
        for i in order.tolist()
        if least[i] >= MIN_UNUSUAL
    ]


def _measure(x: Array, known: KnownValues) -> Floats:
    """Distance of each value to each class in its spreads: (c, d)."""
    away = np.abs(x.astype(np.float64) - known.medians)
    spreads = known.spreads.astype(np.float64)
    varied = np.divide(away, spreads, out=np.full_like(away, MOST_UNUSUAL), where=spreads > 0)
    return np.asarray(np.minimum(np.where(away > 0, varied, 0.0), MOST_UNUSUAL), dtype=np.float32)


def _describe(
    value: float, distance: float, known: KnownValues, label: int, place: int, column: str
) -> UnusualValue:
    median, spread = float(known.medians[label, place]), float(known.spreads[label, place])
    width = USUAL_WIDTH * spread
    return UnusualValue(column, value, distance, median - width, median + width)
