from __future__ import annotations

import numpy as np
import pytest

from cilf.nn.batches import padded_batches


@pytest.mark.parametrize(("n", "size"), [(0, 3), (1, 3), (6, 3), (7, 3), (2, 1)])
def test_every_row_counts_once_and_batches_have_one_size(n: int, size: int) -> None:
    rows = np.arange(n) + 10
    batches = list(padded_batches(rows, size))
    assert all(len(batch) == size for batch, _ in batches)
    assert [row for batch, count in batches for row in batch[:count]] == rows.tolist()


def test_the_rest_is_filled_with_rows_of_the_same_batch() -> None:
    *_, (batch, count) = padded_batches(np.arange(5), 3)
    assert (batch.tolist(), count) == ([3, 4, 3], 2)
