from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.data.idx import DTYPES, has_idx_files, read_idx, read_idx_folder
from cilf.errors import BadInput

IMAGES = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
LABELS = np.array([0, 1, 1, 0], dtype=np.uint8)


def encoded(array: np.ndarray[Any, Any], code: int = 0x08) -> bytes:
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(DTYPES[code]).tobytes()


def write_folder(folder: Path, mark: str = "-", end: str = "") -> None:
    parts = {"train-images": IMAGES, "train-labels": LABELS}
    parts |= {"t10k-images": IMAGES[:2], "t10k-labels": LABELS[:2]}
    for name, array in parts.items():
        content = encoded(array)
        path = folder / f"{name}{mark}idx{array.ndim}-ubyte{end}"
        path.write_bytes(gzip.compress(content) if end else content)


@pytest.mark.parametrize("code", list(DTYPES))
def test_every_type(tmp_path: Path, code: int) -> None:
    path = tmp_path / "values"
    path.write_bytes(encoded(IMAGES, code))
    read = read_idx(path)
    np.testing.assert_array_equal(read, IMAGES)
    assert read.dtype == np.dtype(DTYPES[code]).newbyteorder("=")
    assert read.flags.writeable


@pytest.mark.parametrize(("mark", "end"), [("-", ""), (".", ""), ("-", ".gz"), (".", ".gz")])
def test_folder(tmp_path: Path, mark: str, end: str) -> None:
    assert not has_idx_files(tmp_path)
    write_folder(tmp_path, mark, end)
    assert has_idx_files(tmp_path)
    data = read_idx_folder(tmp_path, "tiny")
    np.testing.assert_array_equal(data.train.X, IMAGES)
    assert data.train.X.dtype == np.uint8
    assert data.train.y.tolist() == [0, 1, 1, 0]
    assert data.test.ids.tolist() == ["test/0", "test/1"]
    assert data.name == "tiny"


def damage(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_idx(path)
    return str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "is no IDX file (it begins with b'\\x89PNG')" in damage(tmp_path / "a", b"\x89PNG...")
    assert "is no IDX file" in damage(tmp_path / "a", b"")
    assert "is no IDX file" in damage(tmp_path / "a", b"\0\0\x07\x01" + bytes(8))


def test_truncated_and_oversized(tmp_path: Path) -> None:
    whole = encoded(IMAGES)
    path = tmp_path / "a"
    assert "is cut off inside its header" in damage(path, whole[:9])
    assert "holds 23 bytes of values, but its shape (4, 2, 3) takes 24" in damage(path, whole[:-1])
    assert "holds 25 bytes of values" in damage(path, whole + b"\0")
    huge = b"\0\0\x08\x03" + b"\xff" * 12
    assert "takes 79228162458924105385300197375" in damage(path, huge)


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(encoded(IMAGES))
    assert "a.gz cannot be read" in damage(tmp_path / "a.gz", whole[:-9])
    assert "a.gz cannot be read" in damage(tmp_path / "a.gz", encoded(IMAGES))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing cannot be read \(No such file or directory\)"):
        read_idx(tmp_path / "nothing")
    write_folder(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(BadInput, match=r"lacks t10k-labels-idx1-ubyte \(or \.gz\): add it"):
        read_idx_folder(tmp_path, "tiny")


def test_labels_for_each_image(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(encoded(LABELS[:3]))
    with pytest.raises(BadInput, match=rf"{tmp_path}: y_train has 3 labels for 4 instances"):
        read_idx_folder(tmp_path, "tiny")
