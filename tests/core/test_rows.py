"""A function of a block is applied to all rows, in the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.core import rows
from cilf.core.rows import Converted, load_rows, map_rows
from cilf.core.types import Array

X = np.arange(30.0).reshape(10, 3)


def test_results_are_joined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 4)
    sizes: list[int] = []

    def work(block: Array) -> tuple[Array, Array]:
        sizes.append(len(block))
        return 2 * block, block.sum(1)

    doubled, sums = map_rows(work, X)
    assert np.array_equal(doubled, 2 * X)
    assert np.array_equal(sums, X.sum(1))
    assert sizes == [4, 4, 2]


def test_converted_rows_are_converted_each_time() -> None:
    halves = Converted(X, lambda block: block / 2)
    (sums,) = halves.map(lambda block: (block.sum(1),))
    assert np.array_equal(sums, X.sum(1) / 2)
    assert np.array_equal(halves.take(np.array([5, 1])), X[[5, 1]] / 2)
    assert len(halves) == 10


def test_an_array_is_here_already() -> None:
    assert load_rows(X) is X
