"""Rows of instances wherever they are: in this process, or in blocks on a cluster.

A function that treats each instance by itself is mapped over rows where these are. Only what it
returns comes to this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cilf.core.types import Array, Ints

BLOCK = 4096  # instances that a function gets at once

Place = slice | Ints  # of the rows of a block among all rows
Work = Callable[[Any], tuple[Any, ...]]  # a block -> arrays with a row for each of its instances


class Rows(ABC):
    """Instances in blocks, in an order that has nothing to do with where the blocks are."""

    shape: tuple[int, ...]  # (n, ...)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes, as that of an array."""
        return len(self.shape)

    @abstractmethod
    def blocks(self, work: Work) -> Iterator[tuple[Place, tuple[Array, ...]]]:
        """Yield what ``work`` returns for each block, and the place of the block.

        Blocks come in any order.
        """

    @abstractmethod
    def transform(self, work: Callable[[Array], Array]) -> Rows:
        """What ``work`` makes of each instance, kept where it was made."""

    @abstractmethod
    def select(self, rows: Ints) -> Rows:
        """Some of the rows, in ascending order."""

    @abstractmethod
    def take(self, rows: Ints) -> Array:
        """Some of the rows, in the given order, as an array in this process."""


@dataclass(frozen=True)
class Converted:
    """Rows as ``convert`` makes them, each time that they are used.

    Attributes:
        rows: the rows, or an array of them.
        convert: what makes a block of values from a block of rows.
    """

    rows: Array | Rows
    convert: Callable[[Array], Any]

    def __len__(self) -> int:
        return len(self.rows)

    def map(self, work: Work) -> tuple[Array, ...]:
        """What ``work`` returns for all converted rows; see :func:`map_rows`."""
        convert = self.convert
        return map_rows(lambda block: work(convert(block)), self.rows)

    def take(self, rows: Ints) -> Any:
        """Some of the rows, converted."""
        chosen = self.rows.take(rows) if isinstance(self.rows, Rows) else self.rows[rows]
        return self.convert(chosen)


def map_rows(work: Work, X: Array | Rows) -> tuple[Array, ...]:
    """What ``work`` returns for all rows, as arrays in this process, in the order of the rows.

    ``work`` treats each instance by itself, because it gets them in blocks.

    >>> map_rows(lambda block: (block.sum(1), block[:, 0] > 2), np.arange(6).reshape(3, 2))
    (array([1, 5, 9]), array([False, False,  True]))
    """
    joined: tuple[Array, ...] = ()
    results = X.blocks(work) if isinstance(X, Rows) else _local_blocks(work, X)
    for place, parts in results:
        if not joined:  # small results between large temporary values would hold their memory
            joined = tuple(np.empty((len(X), *part.shape[1:]), part.dtype) for part in parts)
        for whole, part in zip(joined, parts, strict=True):
            whole[place] = part
    return joined


def _local_blocks(work: Work, X: Array) -> Iterator[tuple[Place, tuple[Array, ...]]]:
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK]
        yield slice(start, start + len(block)), work(block)


def load_rows(X: Array | Rows) -> Array:
    """The rows as an array in the memory of this process."""
    if not isinstance(X, Rows):
        return X
    (array,) = map_rows(lambda block: (block,), X)
    return array
