"""Near-duplicates: instances that are copies of each other, or frames of one scene.

Two instances are near-duplicates if they lie so much closer to each other than their surroundings
that chance does not explain it. The surroundings of an instance are its distances to a random
sample of the data. In a neighbourhood of dimension D, the number of other instances within a
distance grows with its D-th power. This gives the number of instances expected as near as the
nearest one, and the procedure of Benjamini and Hochberg says from which number on it is no chance.
Values of whole steps, such as counts, coincide by chance: a distance is never taken for smaller
than the steps. Images are compared by the means of blocks, and what a small shift of one of them
changes does not count (the tangent distance of Simard, LeCun and Denker).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from cilf.core.random import generator
from cilf.core.types import Array, Bools, Floats, Ints

SHIFTS = 16  # a shift is up to one of so many parts of the side of an image
SIDE = 8  # an image is compared by the means of so many blocks a side: noise hardly changes them
N_DIMENSIONS = 128  # of longer vectors, after a random projection
N_HASHES = 2**16  # of the words and pairs of words of a text
SAMPLE = 512  # instances that the surroundings of every instance are measured by
NEAR_SHARE, FEWEST_NEAR = 0.05, 20  # of the sample that make the surroundings
FEWEST = 12  # instances whose surroundings can be measured
FALSE_SHARE = 0.05  # of the instances called near-duplicates
LEAST_DIMENSION = 0.1
LARGEST_RATIO = 0.4  # of a distance to that of the surroundings
LEAF, N_TREES = 512, 6  # instances that are compared with each other, and how often they are drawn
BLOCK = 2048
COLUMNS = 16  # that are brought to equal spread at once
ROUNDING = 1e-6  # of single precision
WHOLE = 0.05  # from a whole number


@dataclass(frozen=True)
class Points:
    """Instances as short vectors."""

    vectors: Floats  # (n, d)
    tangents: Floats  # (n, t, d) orthonormal directions that do not count, around each instance
    step: float = 0.0  # no distance is known better than this

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, rows: Ints | slice) -> Points:
        """These instances only."""
        return Points(self.vectors[rows], self.tangents[rows], self.step)


@dataclass(frozen=True)
class Surroundings:
    """What is expected around each instance by chance."""

    scale: Floats  # (n,) distance within which ``expected`` others lie
    dimension: Floats  # (n,)
    expected: float

    def count(self, distance: Floats) -> Floats:
        """The expected number of others as near as this, for each instance."""
        ratio = distance / np.maximum(self.scale, np.finfo(np.float32).tiny)
        counts = self.expected * np.minimum(ratio, 1.0) ** self.dimension
        return np.where(ratio < LARGEST_RATIO, counts, np.inf)

    def reach(self, count: float) -> Floats:
        """The distance within which so many others are expected, for each instance."""
        ratio = (count / self.expected) ** (1 / self.dimension)
        reached: Floats = self.scale * np.minimum(ratio, LARGEST_RATIO)
        return reached


def group_near_duplicates(*parts: Array) -> Ints:
    """Give each instance a group number: near-duplicates have the same one.

    Args:
        parts: instances of one form, (n, d) vectors, (n, h, w) or (n, h, w, c) images, or texts.
            Several parts count together.

    Fewer than 12 instances are no near-duplicates of each other.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(100, 5))
    >>> group = group_near_duplicates(rows, rows[:2] + 0.001)
    >>> (group[100:] == group[:2]).all(), len(np.unique(group))
    (np.True_, 100)
    """
    points = _to_points(parts)
    least = max(points.step, _measure_rounding(points))
    if len(points) < FEWEST:
        return np.arange(len(points))
    around = _measure_surroundings(points)
    nearest = np.full(len(points), np.inf, dtype=np.float32)
    for rows, distance in _compare(points):
        nearest[rows] = np.minimum(nearest[rows], distance.min(1))
    count = _find_largest_count(around.count(np.maximum(nearest, least)))
    if count is None:
        return np.arange(len(points))
    reach = around.reach(count)
    return _join(points, np.where(reach >= least, reach, -1.0))


def join_groups(a: Ints, b: Ints) -> Ints:
    """Give two instances the same number if one of two groupings does; other numbers as in ``a``.

    >>> join_groups(np.array([7, 8, 9, 8]), np.array([0, 0, 1, 2])).tolist()
    [7, 7, 9, 7]
    """
    _, rows_a = np.unique(a, return_inverse=True)
    _, rows_b = np.unique(b, return_inverse=True)
    n = len(a)
    joined = _find_components(rows_a, n + rows_b, 2 * n)[rows_a]
    _, first, again = np.unique(joined, return_index=True, return_inverse=True)
    numbers: Ints = a[first][again]
    return numbers


def count_near_duplicates(group: Ints) -> int:
    """The number of instances beyond the first of each group."""
    return len(group) - len(np.unique(group))


def find_mixed(group: Ints, y: Array) -> Bools:
    """Find the instances whose near-duplicates have another label.

    >>> find_mixed(np.array([0, 0, 1, 1]), np.array(["a", "b", "b", "b"])).tolist()
    [True, True, False, False]
    """
    _, labels = np.unique(y, return_inverse=True)
    pairs = np.unique(np.stack([group, labels]), axis=1)[0]
    numbers, counts = np.unique(pairs, return_counts=True)
    return np.isin(group, numbers[counts > 1])


def choose_groups(group: Ints, rows: Ints, wanted: int, *, most: int) -> Ints:
    """Choose rows in their order, whole groups, up to ``wanted`` rows.

    If no group is that small, the smallest one is chosen, unless it has more than ``most`` rows.

    >>> choose_groups(np.array([0, 1, 0, 2]), np.array([2, 1, 0, 3]), 2, most=3).tolist()
    [2, 0]
    """
    _, first, member, sizes = np.unique(
        group[rows], return_index=True, return_inverse=True, return_counts=True
    )
    chosen = np.zeros(len(sizes), dtype=bool)
    left = wanted
    for at in np.argsort(first):
        if sizes[at] <= left:
            chosen[at] = True
            left -= int(sizes[at])
    if not chosen.any() and len(sizes) and sizes.min() <= most:
        chosen[sizes.argmin()] = True
    taken: Ints = rows[chosen[member]]
    return taken


def _find_components(a: Ints, b: Ints, n: int) -> Ints:
    """Number the components of a graph of ``n`` nodes, whose edges lead from ``a`` to ``b``."""
    from scipy.sparse import coo_array  # here, since importing it takes time
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a), dtype=bool), (a, b)), shape=(n, n))
    components: Ints = connected_components(graph, directed=False)[1]
    return components


def _find_largest_count(counts: Floats) -> float | None:
    """The largest expected count that is no chance (Benjamini and Hochberg); None if all are."""
    ordered = np.sort(counts)
    allowed = FALSE_SHARE * np.arange(1, len(counts) + 1) / len(counts)
    passed = np.flatnonzero(ordered <= allowed)
    return float(allowed[passed[-1]]) if len(passed) else None


def _join(points: Points, reach: Floats) -> Ints:
    """Number the sets that pairs within the reach of both connect, in order of appearance."""
    rows_of, heads_of = [], []
    for rows, distance in _compare(points):
        near = distance <= np.minimum(reach[rows][:, None], reach[rows][None])
        one, other = np.nonzero(near)
        components = _find_components(one, other, len(near))
        _, head, component = np.unique(components, return_index=True, return_inverse=True)
        rows_of.append(rows)
        heads_of.append(rows[head[component]])
    a, b = np.concatenate(rows_of), np.concatenate(heads_of)
    components = _find_components(a, b, len(points))
    _, first, group = np.unique(components, return_index=True, return_inverse=True)
    order: Ints = np.argsort(np.argsort(first))
    return order[group]


def _measure_surroundings(points: Points) -> Surroundings:
    rows = generator(0, "surroundings").permutation(len(points))[:SAMPLE]
    near = max(round(NEAR_SHARE * len(rows)), min(FEWEST_NEAR, len(rows) // 3))
    nearer = near // 2
    scale, inner = np.empty((2, len(points)), dtype=np.float32)
    for start in range(0, len(points), BLOCK):
        distance = _distances(points.rows(slice(start, start + BLOCK)), points.rows(rows))
        distance.partition([nearer, near], axis=1)
        inner[start : start + BLOCK] = distance[:, nearer]
        scale[start : start + BLOCK] = distance[:, near]
    growth = np.log(np.maximum(scale, 1e-30) / np.maximum(inner, 1e-30))
    dimension = np.log((near + 0.5) / (nearer + 0.5)) / np.maximum(growth, 1e-3)
    usual = max(float(np.median(dimension)), LEAST_DIMENSION)
    # A dimension that is estimated too high by chance would make near ones too improbable.
    dimension = np.clip(dimension, usual / 2, usual)
    return Surroundings(scale, dimension, len(points) * near / len(rows))


def _compare(points: Points) -> Iterator[tuple[Ints, Floats]]:
    """Yield rows that lie near each other, and their distances; infinite to themselves.

    Random projections halve the rows until few are left. Near-duplicates stay together in one of
    several trees almost surely.
    """
    n_trees = 1 if len(points) <= LEAF * 4 else N_TREES
    rng = generator(0, "near-duplicates")
    for _ in range(n_trees):
        waiting = [np.arange(len(points))]
        while waiting:
            rows = waiting.pop()
            if n_trees == 1 or len(rows) <= LEAF:
                distance = _distances(points.rows(rows), points.rows(rows))
                np.fill_diagonal(distance, np.inf)
                yield rows, distance
                continue
            direction = np.asarray(rng.normal(size=points.vectors.shape[1]), dtype=np.float32)
            along = points.vectors[rows] @ direction
            order = np.argsort(along, kind="stable")
            waiting += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]


def _distances(a: Points, b: Points) -> Floats:
    """The distance of each pair, without what a shift of one of them changes: (n, m)."""
    x, y = a.vectors, b.vectors
    squared = (x * x).sum(1)[:, None] - 2 * (x @ y.T) + (y * y).sum(1)[None]
    if a.tangents.shape[1]:
        squared -= np.maximum(_along_tangents(a, b), _along_tangents(b, a).T)
    rounding = ROUNDING * ((x * x).sum(1)[:, None] + (y * y).sum(1)[None])
    distance: Floats = np.sqrt(np.where(squared > rounding, squared, 0))
    return distance


def _measure_rounding(points: Points) -> float:
    """The usual distance that rounding makes of none."""
    squared = (points.vectors * points.vectors).sum(1)
    return float(np.sqrt(2 * ROUNDING * squared.mean())) if len(squared) else 0.0


def _along_tangents(a: Points, b: Points) -> Floats:
    """The squared part of each difference along the tangents at ``a``: (n, m)."""
    found = np.zeros((len(a), len(b)), dtype=np.float32)
    for tangent in np.moveaxis(a.tangents, 1, 0):
        found += ((tangent * a.vectors).sum(1)[:, None] - tangent @ b.vectors.T) ** 2
    return found


# ----------------------------------------------------------------- instances as points


def _to_points(parts: tuple[Array, ...]) -> Points:
    if parts[0].ndim > 2:
        vectors, tangents = map(np.concatenate, zip(*map(_average_blocks, parts), strict=True))
        shortened = _shorten(
            np.concatenate([vectors - vectors.mean(0), *np.moveaxis(tangents, 1, 0)])
        )
        n = len(vectors)
        return Points(shortened[:n], _orthonormalise(shortened[n : 2 * n], shortened[2 * n :]))
    if parts[0].ndim == 1:
        vectors, step = _count_words(np.concatenate(parts)), 0.0
    else:
        vectors, step = _standardise(parts[0] if len(parts) == 1 else np.concatenate(parts))
    shortened = _shorten(vectors)
    return Points(shortened, np.zeros((len(shortened), 0, shortened.shape[1]), np.float32), step)


def _standardise(rows: Array) -> tuple[Floats, float]:
    """Columns of equal spread, and the distance that their steps make of equal values."""
    standard, steps = np.empty(rows.shape, dtype=np.float32), 0.0
    for start in range(0, rows.shape[1], COLUMNS):
        columns = rows[:, start : start + COLUMNS].T.astype(np.float64, order="C")
        spread = columns.std(1, keepdims=True)
        columns -= columns.mean(1, keepdims=True)
        columns /= np.where(spread > 0, spread, 1.0)
        steps += sum(_find_step(column) ** 2 for column in columns)
        standard[:, start : start + COLUMNS] = columns.T
    return standard, float(np.sqrt(steps / 6))


def _find_step(column: Floats) -> float:
    """The smallest difference between values, if all differences are multiples of it, else 0."""
    gaps = np.diff(np.unique(column))
    gaps = gaps[gaps > ROUNDING]
    if not len(gaps):
        return 0.0
    multiples = gaps / gaps.min()
    is_whole = np.abs(multiples - np.round(multiples)) < WHOLE
    return float(gaps.min()) if is_whole.all() else 0.0


def _average_blocks(images: Array) -> tuple[Floats, Floats]:
    """The means of blocks of each image (n, d), and what a shift changes of them (n, 2, d)."""
    height, width = images.shape[1:3]
    margins = max(1, height // SHIFTS), max(1, width // SHIFTS)
    down, across = (
        [_block_weights(length, margin, at) for at in (margin, 0, 2 * margin)]
        for length, margin in zip((height, width), margins, strict=True)
    )
    vectors, tangents = [], []
    for start in range(0, max(len(images), 1), BLOCK):  # no images have blocks too
        some = np.asarray(images[start : start + BLOCK], dtype=np.float32)
        vectors.append(_average(some, down[0], across[0]))
        moved = [
            _average(some, down[1], across[0]) - _average(some, down[2], across[0]),
            _average(some, down[0], across[1]) - _average(some, down[0], across[2]),
        ]
        tangents.append(np.stack(moved, axis=1))
    return np.concatenate(vectors), np.concatenate(tangents)


def _average(images: Floats, down: Floats, across: Floats) -> Floats:
    averages = np.tensordot(np.tensordot(images, down, (1, 1)), across, (1, 1))
    return averages.reshape(len(images), int(np.prod(averages.shape[1:])))


def _block_weights(length: int, margin: int, at: int) -> Floats:
    """The share of each pixel in each block, without margins, from a pixel on: (blocks, length)."""
    inner = max(1, length - 2 * margin)
    n_blocks = min(SIDE, inner)
    ends = min(at, length - inner) + np.arange(1, n_blocks + 1)[:, None] * inner / n_blocks
    pixels = np.arange(length)[None]
    overlap = np.minimum(ends, pixels + 1) - np.maximum(ends - inner / n_blocks, pixels)
    weights: Floats = (np.maximum(overlap, 0) * n_blocks / inner).astype(np.float32)
    return weights


def _orthonormalise(a: Floats, b: Floats) -> Floats:
    """Two directions for each instance, orthogonal and of length 1, or 0 where it is uniform."""
    a = _normalise(a)
    b = _normalise(b - (a * b).sum(1, keepdims=True) * a)
    return np.stack([a, b], axis=1)


def _normalise(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = np.where(lengths > 1e-3, vectors / np.maximum(lengths, 1e-3), 0.0)
    return scaled.astype(np.float32)


def _count_words(texts: Array) -> Floats:
    """How often each word and pair of words occurs, hashed; the rows have length 1."""
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(n_features=N_HASHES, ngram_range=(1, 2)).transform(texts.tolist())
    return cast(Floats, counts)


def _shorten(vectors: Floats) -> Floats:
    """Vectors of at most ``N_DIMENSIONS``, by a random projection that keeps distances, about."""
    if vectors.shape[1] > N_DIMENSIONS:
        rng = generator(0, "projection")
        signs = rng.integers(0, 2, (vectors.shape[1], N_DIMENSIONS), dtype=np.int8)
        vectors = vectors @ ((2 * signs - 1) / np.sqrt(N_DIMENSIONS)).astype(np.float32)
    return np.ascontiguousarray(vectors, dtype=np.float32)
