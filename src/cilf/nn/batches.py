"""Batches that are all of one size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cilf.core.types import Ints


def padded_batches(rows: Ints, size: int) -> Iterator[tuple[Ints, int]]:
    """Batches of exactly ``size`` row numbers, each with the number of rows that are not padding.

    Rounding depends on the shape of a batch. In batches of one size an instance gets the same
    features alone and among others.

    >>> [(batch.tolist(), n) for batch, n in padded_batches(np.arange(5), 3)]
    [([0, 1, 2], 3), ([3, 4, 3], 2)]
    """
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        yield np.resize(batch, size), len(batch)
