"""A ``.npy`` file that grows row by row, for arrays that do not fit in memory."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from cilf.core.types import Array


class RowWriter:
    """Writes rows of one shape; the file is valid after the ``with`` block.

    The header is written again at the end. numpy pads it, so its length does not change.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RowWriter(Path(folder, "rows.npy"), (2,), np.uint8) as writer:
    ...         writer.append(np.array([1, 2]))
    ...         writer.append(np.array([3, 4]))
    ...     np.load(Path(folder, "rows.npy")).tolist()
    [[1, 2], [3, 4]]
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._shape, self._dtype, self._n_rows = shape, np.dtype(dtype), 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, row: Array) -> None:
        """Append a row."""
        if row.shape != self._shape:
            raise ValueError(f"a row of shape {row.shape} in a file of rows {self._shape}")
        self._file.write(row.astype(self._dtype, copy=False).tobytes())
        self._n_rows += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        shape = (self._n_rows, *self._shape)
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)
