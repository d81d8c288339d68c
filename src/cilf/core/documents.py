"""The one way to read the files that this package wrote: JSON and npz, checked before use.

A file may have been cut short, edited or made up. :class:`Damage` says in a few words what is
wrong with it. The reader of a folder turns that into a line with the remedy. Nothing is unpickled,
and an array takes no more memory than its file says.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Annotated, Any, BinaryIO

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cilf.core.reading import open_regular_file
from cilf.core.types import Array

MOST_REPEATED = 1100  # how many times larger than its packed form content can be (deflate)
LARGEST = 2**53  # of a number that JSON keeps exactly


def _require_unicode(text: str) -> str:
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_require_unicode)]  # without lone surrogates
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=LARGEST)]


class Damage(ValueError):
    """What is wrong with a file, in a few words that begin with its name."""


class Document(BaseModel):
    """The schema of a JSON object. Keys that it does not name may hold anything."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


def digest(content: bytes) -> str:
    """The SHA-256 of some content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_content(path: Path) -> bytes:
    """The bytes of a regular file."""
    return read_part(path, 0, None)


def read_part(path: Path, start: int, end: int | None) -> bytes:
    """Some bytes of a regular file; to its end if ``end`` is None."""
    try:
        with open_regular_file(path) as file:
            file.seek(start)
            return file.read() if end is None else file.read(end - start)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Damage(f"{path.name} cannot be read: {reason}") from error


def read_document(path: Path, schema: type[Document]) -> dict[str, Any]:
    """The JSON object in a file, which the schema has accepted."""
    return parse_document(read_content(path), path.name, schema)


def parse_document(content: bytes, name: str, schema: type[Document]) -> dict[str, Any]:
    """The JSON object that some bytes hold; ``name`` is their name in messages.

    >>> class Size(Document):
    ...     width: Count
    >>> parse_document(b'{"width": 3, "note": null}', "size.json", Size)
    {'width': 3, 'note': None}
    >>> parse_document(b'{"width": "3"}', "size.json", Size)
    Traceback (most recent call last):
    ...
    cilf.core.documents.Damage: size.json has no valid width
    """
    return check_document(parse_json(content, name), name, schema)


def check_document(plain: Any, name: str, schema: type[Document]) -> dict[str, Any]:
    """The same for a JSON value that was parsed already."""
    if not isinstance(plain, dict):
        raise Damage(f"{name} holds no JSON object")
    try:
        schema.model_validate(plain)
    except ValidationError as error:
        place = ".".join(map(_show_key, error.errors(include_url=False)[0]["loc"]))
        raise Damage(f"{name} has no valid {place or 'keys'}") from error
    return plain


def _show_key(key: int | str) -> str:
    return str(key).encode(errors="backslashreplace").decode()


def parse_json(content: bytes, name: str) -> Any:
    """The JSON value that some bytes hold. NaN and infinity are no JSON."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Damage(f"{name} is no JSON") from error


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


# ----------------------------------------------------------------- arrays


@dataclass(frozen=True)
class ArrayForm:
    """What an array of a file must be.

    Attributes:
        kinds: the kinds of type that it may have, as in ``numpy.dtype.kind``.
        ndim: the number of its dimensions; None is any number.
        rows: arrays with the same name here have the same length; "" is a length of its own.
        optional: whether the array may be missing.
    """

    kinds: str
    ndim: int | None = None
    rows: str = ""
    optional: bool = False


def read_arrays(path: Path, forms: Mapping[str, ArrayForm]) -> dict[str, Array]:
    """The arrays of an npz file."""
    return unpack_arrays(read_content(path), path.name, forms)


def unpack_arrays(content: bytes, name: str, forms: Mapping[str, ArrayForm]) -> dict[str, Array]:
    """The arrays that the bytes of an npz file hold; ``name`` is its name in messages."""
    arrays = _unpack(content, name)
    lengths: dict[str, int] = {}
    for key, form in forms.items():
        if key not in arrays:
            if form.optional:
                continue
            raise Damage(f"{name} lacks the array {key}")
        array = arrays[key]
        if array.dtype.kind not in form.kinds or form.ndim not in (None, array.ndim):
            raise Damage(f"{name} has no valid array {key}")
        if form.rows:
            n = len(array) if array.ndim else -1
            if lengths.setdefault(form.rows, n) != n:
                raise Damage(f"{name} has an array {key} of another length")
    return arrays


def _unpack(content: bytes, name: str) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            return {
                member.filename.removesuffix(".npy"): _unpack_member(archive, member, name)
                for member in members
            }
    except (
        OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, MemoryError,
        OverflowError, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        if isinstance(error, Damage):
            raise
        raise Damage(f"{name} is no npz file of arrays") from error


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Array:
    if member.file_size > MOST_REPEATED * max(member.compress_size, 1):
        raise Damage(f"{name} claims more content than it can hold")
    return parse_npy(archive.read(member), name)


def parse_npy(content: bytes, name: str) -> Array:
    """The array that the bytes of an npy file hold; its header must agree with its size."""
    file = io.BytesIO(content)
    try:
        shape, dtype = _read_header(file)
        n_bytes = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or n_bytes != len(content) - file.tell():
            raise Damage(f"{name} has an array of another size than its header says")
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except Damage:
        raise
    except (ValueError, TypeError, EOFError, OverflowError, MemoryError) as error:
        raise Damage(f"{name} holds no array") from error


def map_npy(path: Path, form: ArrayForm) -> Array:
    """The array in an npy file, of which only the rows that are used are read."""
    try:
        with open_regular_file(path) as file:
            shape, dtype = _read_header(file)
            n_bytes = math.prod(shape) * dtype.itemsize
            is_whole = file.tell() + n_bytes == os.fstat(file.fileno()).st_size
    except (OSError, ValueError, TypeError, EOFError, OverflowError) as error:
        raise Damage(f"{path.name} holds no array") from error
    if not is_whole or dtype.kind not in form.kinds or form.ndim not in (None, len(shape)):
        raise Damage(f"{path.name} has no valid array")
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type that the header of an npy file states."""
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, _, dtype = read(file)
    except (SyntaxError, TokenError) as error:  # numpy parses the header as Python
        raise ValueError("the header is no dictionary") from error
    return shape, dtype
