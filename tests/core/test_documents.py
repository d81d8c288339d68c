from __future__ import annotations

import io
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cilf.core.documents import (
    ArrayForm,
    Count,
    Damage,
    Document,
    Text,
    map_npy,
    parse_document,
    parse_npy,
    read_content,
    read_document,
    unpack_arrays,
)


class Size(Document):
    width: Count
    name: Text = ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b'{"width": NaN}', "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"width": ' + b"9" * 5000 + b"}", "is no JSON"),
        (b"[3]", "holds no JSON object"),
        (b"{}", "has no valid width"),
        (b'{"width": true}', "has no valid width"),
        (b'{"width": 3.0}', "has no valid width"),
        (b'{"width": -1}', "has no valid width"),
        (b'{"width": 10000000000000000000000}', "has no valid width"),
        (b'{"width": 3, "name": "\\ud800"}', "has no valid name"),
        (b'{"width": 3, "\\ud800": 1}', "has no valid keys"),
    ],
)
def test_a_document_that_its_schema_refuses(content: bytes, problem: str) -> None:
    with pytest.raises(Damage, match=f"size.json {problem}"):
        parse_document(content, "size.json", Size)


def test_a_document_is_read_from_a_regular_file(tmp_path: Path) -> None:
    (tmp_path / "size.json").write_text('{"width": 3, "more": [1]}')
    assert read_document(tmp_path / "size.json", Size) == {"width": 3, "more": [1]}
    os.mkfifo(tmp_path / "pipe")
    for name, problem in (("pipe", "not a regular"), ("missing", "No such"), ("a\0b", "null")):
        with pytest.raises(Damage, match=f"cannot be read: .*{problem}"):
            read_content(tmp_path / name)


FORMS = {
    "ids": ArrayForm("U", ndim=1, rows="n"),
    "X": ArrayForm("f", rows="n"),
    "more": ArrayForm("i", optional=True),
}


def pack(**arrays: object) -> bytes:
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def put_into_zip(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ids.npy", content)
    return packed.getvalue()


def write_header(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    file = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def test_arrays_are_unpacked() -> None:
    X = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    arrays = unpack_arrays(pack(ids=np.array(["a", "bc"]), X=X), "kept.npz", FORMS)
    assert arrays["ids"].tolist() == ["a", "bc"]
    assert np.array_equal(arrays["X"], X)
    empty = unpack_arrays(pack(ids=np.empty(0, "U1"), X=X[:0]), "kept.npz", FORMS)
    assert empty["X"].shape == (0, 3)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is no npz file"),
        (pack(ids=["a"], X=np.zeros(1))[:-40], "is no npz file"),
        (pack(ids=["a"]), "lacks the array X"),
        (pack(ids=[1], X=np.zeros(1)), "has no valid array ids"),
        (pack(ids=[["a"]], X=np.zeros(1)), "has no valid array ids"),
        (pack(ids=["a"], X=np.zeros(2)), "array X of another length"),
        (pack(ids=["a"], X=np.float32(2)), "array X of another length"),
        (pack(ids=np.array([{}], dtype=object), X=np.zeros(1)), "another size than its header"),
        (put_into_zip(b"\x80\x04N."), "holds no array"),
        (put_into_zip(write_header((10**12,))), "another size than its header"),
        (put_into_zip(write_header((-1,))), "another size than its header|holds no array"),
        (put_into_zip(write_header((1,), "no type")), "holds no array"),
    ],
)
def test_arrays_that_cannot_be_used(content: bytes, problem: str) -> None:
    with pytest.raises(Damage, match=f"kept.npz .*{problem}|kept.npz {problem}"):
        unpack_arrays(content, "kept.npz", FORMS)


def test_content_that_is_larger_than_its_packed_form_can_be() -> None:
    packed = bytearray(pack(ids=["a"], X=np.zeros(1, dtype=np.float32)))
    place = packed.index(b"PK\x01\x02") + 24  # the size of the first array, in the directory
    packed[place : place + 4] = (2**31).to_bytes(4, "little")
    with pytest.raises(Damage, match="claims more content than it can hold"):
        unpack_arrays(bytes(packed), "kept.npz", FORMS)


def test_no_bit_of_a_header_makes_a_traceback(tmp_path: Path) -> None:
    packed = io.BytesIO()
    np.save(packed, np.array([5, 7, 9]))
    path, form = tmp_path / "ends.npy", ArrayForm("i", ndim=1)
    refused = 0
    for place in range(8 * 128):
        content = bytearray(packed.getvalue())
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        with warnings.catch_warnings(action="ignore"):  # numpy warns of old names of types
            for read in (lambda: parse_npy(path.read_bytes(), "x"), lambda: map_npy(path, form)):
                try:
                    read()
                except Damage:
                    refused += 1
    assert refused > 1000
