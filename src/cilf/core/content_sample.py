"""A random sample of instances that depends on what they are, and not on where they stand.

Each instance gets a random key from its values. The instances with the smallest keys are the
sample, in the order of their keys. So the same instances in another order have the same sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cilf.core.random import generator
from cilf.core.types import Array, Ints

WORD = 4  # bytes that are read as one number
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd number whose multiples fill 64 bits evenly
HALF = np.uint64(32)


class ContentSample(NamedTuple):
    """The rows of a sample, and which rows of all instances are equal to a sampled one."""

    rows: Ints  # (m,) in the order of the keys
    twins: Ints  # (n,) place in ``rows`` of an equal instance, -1 if there is none


def sample_by_content(keys: Array, size: int) -> ContentSample:
    """Draw ``size`` instances without replacement, each with the same probability.

    ``keys`` are those that ``hash_rows`` gives. Equal instances are drawn one by one, as unequal
    ones are.

    >>> X = np.arange(100.0).reshape(50, 2)
    >>> sample = sample_by_content(hash_rows(X, seed=0), 5)
    >>> again = sample_by_content(hash_rows(X[::-1], seed=0), 5)
    >>> (X[sample.rows] == X[::-1][again.rows]).all()
    np.True_
    >>> int((sample.twins >= 0).sum())
    5
    """
    rows = np.argsort(_mix(keys + _count_earlier(keys) * SPREAD), kind="stable")[:size]
    chosen, first = np.unique(keys[rows], return_index=True)
    place = np.minimum(np.searchsorted(chosen, keys), len(chosen) - 1)
    return ContentSample(rows, np.where(chosen[place] == keys, first[place], -1))


def smallest_class_seen(n: int, size: int, least: int = 6) -> int:
    """The size of a class of which a sample nearly always has ``least`` instances.

    ``size`` of ``n`` instances are drawn. A class of this size has ``least`` of them with a
    probability of 95 % or more.

    >>> [smallest_class_seen(n, 20_000) for n in (20_000, 100_000, 1_000_000)]
    [6, 50, 523]
    """
    from scipy.stats import hypergeom  # half a second to import

    low, high = least, n
    while low < high:
        middle = (low + high) // 2
        if hypergeom.sf(least - 1, n, middle, min(size, n)) >= 0.95:
            high = middle
        else:
            low = middle + 1
    return low


def hash_rows(X: Array, seed: int) -> Array:
    """A random 64-bit number for the values of each instance; equal ones have the same."""
    rng, length = generator(seed, "content sample"), X[:1].nbytes
    factors = rng.integers(0, 2**63, -(-length // WORD), dtype=np.uint64) * np.uint64(2) + SPREAD
    return _mix(_read_words(X) @ (factors | np.uint64(1)))


def _read_words(block: Array) -> Array:
    """The bytes of each instance as mixed 64-bit numbers: (n, words)."""
    flat = np.ascontiguousarray(block).reshape(len(block), -1).view(np.uint8)
    padded = np.pad(flat, ((0, 0), (0, -flat.shape[1] % WORD)))
    return _mix(padded.view(np.uint32).astype(np.uint64))


def _mix(keys: Array) -> Array:
    """Mix the bits of 64-bit numbers, one to one."""
    keys = keys * SPREAD
    keys ^= keys >> HALF
    keys = keys * SPREAD
    keys ^= keys >> HALF
    return keys


def _count_earlier(keys: Array) -> Array:
    """The number of equal keys before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(is_first)
    earlier = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    counts = np.empty(len(keys), dtype=np.uint64)
    counts[order] = earlier.astype(np.uint64)
    return counts
