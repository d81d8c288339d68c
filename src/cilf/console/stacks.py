"""Stacks: pictures, texts or vectors that differ so little that one label is enough.

A stack is narrower than the near-duplicates that stay on one side of a split
(:mod:`cilf.core.near_duplicates`): those may be frames of one scene, and a person may want to name
two frames differently.
"""

from __future__ import annotations

import re

import numpy as np

from cilf.core.types import Array, Floats, Ints

SIDE = 16  # pixels of the pictures that are compared
MAX_DIFFERENCE = 6.0  # of 255 grey levels, as the root of the mean square
MAX_SHARE = 0.15  # of the contrast of the picture
N_DIRECTIONS = 8  # in which candidates are searched


def stack_pictures(pictures: Array) -> Ints:
    """The first row of the stack that each picture belongs to.

    Args:
        pictures: uint8, (n, h, w) or (n, h, w, 3).

    A picture belongs to the first picture that it hardly differs from. Contrast counts, so two dark
    pictures of different things are not the same.

    >>> cat, dog = np.random.default_rng(0).integers(0, 255, (2, 20, 20), dtype=np.uint8)
    >>> stack_pictures(np.stack([cat, dog, cat])).tolist()
    [0, 1, 0]
    """
    from scipy.spatial import KDTree

    small = np.stack([_shrink(picture) for picture in pictures])  # (n, SIDE * SIDE * channels)
    first, stack = _stack_equal(small)
    points = small[first]
    reach = np.minimum(MAX_DIFFERENCE, MAX_SHARE * points.std(axis=1)) * np.sqrt(points.shape[1])
    tree = KDTree(_project(points))
    leader = np.full(len(points), -1)
    for place in range(len(points)):
        if leader[place] < 0:
            near = np.array(tree.query_ball_point(tree.data[place], reach[place] + 1e-3), dtype=int)
            near = near[leader[near] < 0]
            away = np.linalg.norm(points[near] - points[place], axis=1)
            leader[near[away <= reach[place]]] = place
            leader[place] = place
    return np.asarray(first[leader[stack]])


def stack_texts(texts: list[str]) -> Ints:
    """The first row of the same text; case, blanks and punctuation do not count.

    >>> stack_texts(["A cat.", "a  cat", "a dog", "!"]).tolist()
    [0, 0, 2, 3]
    """
    first: dict[str, int] = {}
    keys = (re.sub(r"\W+", " ", text.casefold()).strip() or text for text in texts)
    return np.array([first.setdefault(key, row) for row, key in enumerate(keys)], dtype=np.int64)


def stack_vectors(vectors: Array) -> Ints:
    """The first row of the same vector."""
    first, stack = _stack_equal(vectors)
    return np.asarray(first[stack])


def _stack_equal(rows: Array) -> tuple[Ints, Ints]:
    """The first row of each different one, in order, and the place of each row among them."""
    _, first, stack = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[stack.reshape(-1)]


def _shrink(picture: Array) -> Floats:
    """A picture as a vector of the means of SIDE x SIDE areas for each channel."""
    down = [np.arange(SIDE) * size // SIDE for size in picture.shape[:2]]
    sums = np.add.reduceat(picture.astype(np.float32), np.unique(down[0]), axis=0)
    sums = np.add.reduceat(sums, np.unique(down[1]), axis=1)
    heights = np.diff([*np.unique(down[0]), picture.shape[0]])
    widths = np.diff([*np.unique(down[1]), picture.shape[1]])
    area = heights[:, None] * widths
    means = sums / (area if picture.ndim == 2 else area[..., None])
    return np.asarray(means.reshape(-1))


def _project(points: Floats) -> Floats:
    """The points in the directions in which they differ most; distances only shrink."""
    centred = points - points.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ directions[:, -N_DIRECTIONS:], dtype=np.float64)
