"""The quadratic programme behind support vector machines, for any boxes and targets.

Maximise  target · a − ½ aᵀ K a  over  lower <= a <= upper  with  Σ a = 0.

The equality constraint gives a machine its offset b. Several variables may share a kernel row, for
example if an instance is both positive and negative. ``rows`` holds the row of each variable. The
solver is sequential minimal optimisation: it moves two variables at a time and chooses the second
by second-order information (Fan, Chen and Lin, JMLR 2005). Now and then it moves all variables that
are at no bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cilf.core.types import Array, Ints

BETWEEN_JOINT_MOVES = 200  # steps
LEAST_RIDGE = 1e-10  # against kernel rows that coincide
LEAST_CURVATURE = 1e-12  # of a pair whose kernel rows coincide: the objective is then linear


class Kernel(NamedTuple):
    """A kernel matrix spread over the variables, made once for many programmes."""

    rows: Ints  # (v,) the kernel row of each variable
    columns: Array  # (p, v) the kernel of each row with each variable
    diagonal: Array  # (v,)

    @classmethod
    def spread(cls, matrix: Array, rows: Ints) -> Kernel:
        """The square ``matrix`` for variables that have these rows."""
        return cls(rows, np.ascontiguousarray(matrix[:, rows]), matrix.diagonal()[rows].copy())


class Solution(NamedTuple):
    """The solution of the programme, and its offset."""

    a: Array  # (v,)
    offset: float
    gap: float  # largest violation of the optimality conditions that is left


def solve(
    kernel: Kernel,
    target: Array,
    lower: Array,
    upper: Array,
    *,
    start: Array | None = None,
    tolerance: float = 1e-3,
    max_steps: int | None = None,
) -> Solution:
    """Solve the programme to ``tolerance``, or as far as ``max_steps`` steps lead.

    ``start`` is where to begin; it is moved into the box first.

    >>> kernel = Kernel.spread(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0, 1]))
    >>> found = solve(kernel, np.array([1.0, -1.0]), np.array([0.0, -9.0]), np.array([9.0, 0.0]))
    >>> found.a.tolist(), found.offset
    ([0.5, -0.5], 0.0)
    """
    a = project(np.zeros(len(target)) if start is None else start, lower, upper)
    slope = target - multiply(kernel, a)  # of the objective
    rise_mask, fall_mask = _mask_bounds(a, lower, upper)
    for count in range(1, 1 + (100 * len(target) if max_steps is None else max_steps)):
        first = int((slope + rise_mask).argmax())
        below = slope[first] - (slope + fall_mask)
        if rise_mask[first] != 0.0 or below.max() <= tolerance:
            break
        row = kernel.columns[kernel.rows[first]]
        curvature = np.maximum(kernel.diagonal[first] + kernel.diagonal - 2 * row, LEAST_CURVATURE)
        second = int((np.square(np.maximum(below, 0.0)) / curvature).argmax())
        room = upper[first] - a[first], a[second] - lower[second]
        step = min(below[second] / curvature[second], *room)
        a[first] = upper[first] if step == room[0] else a[first] + step
        a[second] = lower[second] if step == room[1] else a[second] - step
        slope -= step * (row - kernel.columns[kernel.rows[second]])
        pair = np.array([first, second])
        rise_mask[pair], fall_mask[pair] = _mask_bounds(a[pair], lower[pair], upper[pair])
        if count % BETWEEN_JOINT_MOVES == 0:
            move_jointly(kernel, a, slope, lower, upper)
            rise_mask, fall_mask = _mask_bounds(a, lower, upper)
    return Solution(a, *_offset_and_gap(slope, rise_mask, fall_mask))


def _mask_bounds(a: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Masks of the variables that cannot rise, and of those that cannot fall."""
    return np.where(a < upper, 0.0, -np.inf), np.where(a > lower, 0.0, np.inf)


def move_jointly(kernel: Kernel, a: Array, slope: Array, lower: Array, upper: Array) -> None:
    """Move all variables inside their boxes towards their joint optimum, to the first bound.

    Moves of pairs converge slowly if kernel rows are nearly dependent, as with few features.
    """
    free = np.flatnonzero((a > lower) & (a < upper))
    n = len(free)
    if n < 3:
        return
    rows = kernel.rows[free]
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = kernel.columns[rows[:, None], free]
    system[np.arange(n), np.arange(n)] += LEAST_RIDGE * (kernel.diagonal[free].mean() + 1e-300)
    system[n, n] = 0.0
    move = np.linalg.lstsq(system, np.append(slope[free], 0.0))[0][:n]
    room = np.where(move > 0, upper[free] - a[free], a[free] - lower[free])
    shares = room / np.maximum(np.abs(move), 1e-300)
    nearest = int(shares.argmin())
    share = min(1.0, float(shares[nearest]))
    a[free] += share * move
    if share < 1.0:
        bound = upper if move[nearest] > 0 else lower
        a[free[nearest]] = bound[free[nearest]]
    a[free] = np.clip(a[free], lower[free], upper[free])
    slope -= share * (move @ kernel.columns[rows])


def project(a: Array, lower: Array, upper: Array) -> Array:
    """The nearest point in the box whose sum is 0 (the box must hold one).

    >>> project(np.array([2.0, 0.0]), np.array([0.0, -1.0]), np.array([3.0, 0.0])).tolist()
    [1.0, -1.0]
    """
    inside = np.clip(a, lower, upper)
    if abs(inside.sum()) <= 1e-12 * np.abs(inside).sum():
        return inside
    # the sum of clip(a - shift) falls with the shift, in straight pieces between these points
    bends = np.sort(np.concatenate([a - lower, a - upper]))
    first, last = 0, len(bends) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if np.clip(a - bends[middle], lower, upper).sum() > 0:
            first = middle
        else:
            last = middle
    sums = [np.clip(a - bends[end], lower, upper).sum() for end in (first, last)]
    share = sums[0] / (sums[0] - sums[1]) if sums[0] != sums[1] else 0.0
    shift = bends[first] + share * (bends[last] - bends[first])
    return np.asarray(np.clip(a - shift, lower, upper))


def multiply(kernel: Kernel, a: Array) -> Array:
    """K a, for each variable."""
    weights = np.bincount(kernel.rows, weights=a, minlength=len(kernel.columns))
    return np.asarray(weights @ kernel.columns)


def _offset_and_gap(slope: Array, rise_mask: Array, fall_mask: Array) -> tuple[float, float]:
    """b lies between the steepest slope that may go up and the least that may go down."""
    top, bottom = float((slope + rise_mask).max()), float((slope + fall_mask).min())
    if np.isinf(top) or np.isinf(bottom):
        return (bottom if np.isinf(top) else top), 0.0
    return (top + bottom) / 2, max(0.0, top - bottom)
