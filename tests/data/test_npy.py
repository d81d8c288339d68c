from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cilf.data.npy import RowWriter


@given(
    n_rows=st.integers(0, 12),
    shape=st.lists(st.integers(1, 5), max_size=3).map(tuple),
    dtype=st.sampled_from(["u1", "<f4", ">i2", "<i8"]),
)
def test_the_file_is_the_one_that_numpy_writes(
    tmp_path_factory: pytest.TempPathFactory, n_rows: int, shape: tuple[int, ...], dtype: str
) -> None:
    folder = tmp_path_factory.mktemp("npy")
    array = np.arange(n_rows * int(np.prod(shape))).reshape(n_rows, *shape).astype(dtype)
    with RowWriter(folder / "rows.npy", shape, dtype) as writer:
        for row in array:
            writer.append(np.asarray(row))
    np.save(folder / "array.npy", array)
    assert (folder / "rows.npy").read_bytes() == (folder / "array.npy").read_bytes()


def test_many_rows_leave_the_header_its_length(tmp_path: Path) -> None:
    with RowWriter(tmp_path / "rows.npy", (1,), np.uint8) as writer:
        for row in range(12_345):
            writer.append(np.array([row % 251], dtype=np.uint8))
    loaded = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert loaded.shape == (12_345, 1)
    assert loaded[:, 0].tolist() == [row % 251 for row in range(12_345)]


def test_rows_that_are_no_block_of_memory_are_written_in_order(tmp_path: Path) -> None:
    row = np.arange(6).reshape(2, 3).T
    with RowWriter(tmp_path / "rows.npy", (3, 2), np.int64) as writer:
        writer.append(row)
    assert np.load(tmp_path / "rows.npy").tolist() == [row.tolist()]


def test_a_row_of_another_shape_is_refused(tmp_path: Path) -> None:
    with RowWriter(tmp_path / "rows.npy", (2,), np.uint8) as writer:
        with pytest.raises(ValueError, match=r"shape \(3,\) .* rows \(2,\)"):
            writer.append(np.zeros(3))
        writer.append(np.array([1, 2]))
    assert np.load(tmp_path / "rows.npy").tolist() == [[1, 2]]
