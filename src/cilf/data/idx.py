"""The IDX format of the original MNIST files, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from cilf.core.types import Array
from cilf.data.dataset import Dataset
from cilf.errors import BadInput

DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
PARTS = {
    "X_train": "train-images{}idx3-ubyte",
    "y_train": "train-labels{}idx1-ubyte",
    "X_test": "t10k-images{}idx3-ubyte",
    "y_test": "t10k-labels{}idx1-ubyte",
}


def read_idx(path: Path) -> Array:
    """Read the array in an IDX file: two zeros, the type, the shape, the values."""
    content = _read_content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in DTYPES:
        raise BadInput(f"{path} is no IDX file (it begins with {content[:4]!r}): replace it.")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise BadInput(f"{path} is cut off inside its header: get it again.")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    dtype = np.dtype(DTYPES[content[2]])
    expected = math.prod(shape) * dtype.itemsize
    if len(content) - start != expected:
        raise BadInput(
            f"{path} holds {len(content) - start} bytes of values, but its shape {shape} takes "
            f"{expected}: get it again."
        )
    values = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _read_content(path: Path) -> bytes:
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{path} cannot be read ({reason}): get it again.") from error


def has_idx_files(folder: Path) -> bool:
    """Whether a folder holds the training images of a data set in the IDX format."""
    return _find(folder, PARTS["X_train"]) is not None


def read_idx_folder(folder: Path, name: str) -> Dataset:
    """Read the four files of MNIST, or of a data set like it, in a folder."""
    arrays = {part: read_idx(_require_file(folder, pattern)) for part, pattern in PARTS.items()}
    try:
        return Dataset.from_arrays(name, **arrays)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from error


def _require_file(folder: Path, pattern: str) -> Path:
    path = _find(folder, pattern)
    if path is None:
        raise BadInput(f"{folder} lacks {pattern.format('-')} (or .gz): add it.")
    return path


def _find(folder: Path, pattern: str) -> Path | None:
    names = [pattern.format(mark) + end for mark in "-." for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)
