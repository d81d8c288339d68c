"""Frequent directions: a few rows whose products stand for those of all rows ever seen.

Liberty, "Simple and deterministic matrix sketching", KDD 2013.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cilf.core.types import Array, Floats


@dataclass(frozen=True)
class Sketch:
    """A matrix B of few rows for the matrix A of all rows it was fed.

    Whatever their order, 0 <= |Ax|² - |Bx|² <= 2 |A|² / size for each direction x, where |A|² is
    the sum of all squares. Up to ``size`` rows are kept as they are.

    >>> A = np.eye(3)[[0, 0, 0, 0, 0, 1]]
    >>> B = Sketch.empty(4, 3).feed(A).rows
    >>> A.T @ A - B.T @ B <= 2 * np.square(A).sum() / 4
    array([[ True,  True,  True],
           [ True,  True,  True],
           [ True,  True,  True]])
    """

    rows: Floats  # (size, d); from n_filled on they are free
    n_filled: int = 0

    @classmethod
    def empty(cls, size: int, n_features: int) -> Sketch:
        """An empty sketch."""
        return cls(np.zeros((size, n_features), dtype=np.float32))

    def feed(self, rows: Array) -> Sketch:
        """The sketch with these rows (n, d) added. The rows of another sketch merge the two."""
        kept, n_filled = self.rows.copy(), self.n_filled
        while len(rows):
            if n_filled == len(kept):
                kept, n_filled = shrink(kept)
            taken = rows[: len(kept) - n_filled]
            kept[n_filled : n_filled + len(taken)] = taken
            n_filled, rows = n_filled + len(taken), rows[len(taken) :]
        return Sketch(kept, n_filled)

    def main_directions(self, energy: float) -> Array:
        """The main unit directions (k, d) that hold the share ``energy`` of all squares.

        There is at least one, and never a whole basis, since every vector would lie in its span.
        """
        _, values, directions = np.linalg.svd(self.rows.astype(np.float64), full_matrices=False)
        held = np.cumsum(np.square(values))
        n = int((held < energy * held[-1]).sum()) + 1
        return np.asarray(directions[: max(1, min(n, self.rows.shape[1] - 1))])


def shrink(rows: Array) -> tuple[Floats, int]:
    """Shorten the main directions so that half of the rows become free.

    Each direction loses the squared length of the middle one. Returns the rows and how many are
    left.
    """
    _, values, directions = np.linalg.svd(rows.astype(np.float64), full_matrices=False)
    squares = np.square(values)
    middle = (len(rows) + 1) // 2
    lost = squares[middle - 1] if len(squares) >= middle else 0.0
    lengths = np.sqrt(np.maximum(squares - lost, 0.0))
    n_filled = int(np.count_nonzero(lengths))
    kept = np.zeros(rows.shape, dtype=np.float32)
    kept[:n_filled] = lengths[:n_filled, None] * directions[:n_filled]
    return kept, n_filled
