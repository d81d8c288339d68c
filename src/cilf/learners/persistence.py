"""Model folders: JSON and safetensors with checksums, replaced atomically, never a pickle.

``model.json`` names its tensor file by the hash of the content. A save ends with one atomic
replacement of ``model.json``: the folder holds the old model before it and the new one after it.

A folder may also hold versions of a model side by side, ``versions/0001``, ``versions/0002``, ...,
each of which is a model folder. The file ``current`` names the one that is read. Two digests may
follow: of the log beside it, and of the ``model.json`` of this version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as pack_tensors

from cilf.core.documents import (
    Count,
    Damage,
    Digest,
    Document,
    Text,
    digest,
    parse_document,
    read_content,
)
from cilf.core.files import PENDING, make_folder, replace_file
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput

FORMAT = 2
HEAD = "model.json"
CURRENT = "current"  # names the version to read
VERSIONS = "versions"
FUNCTION = "function"  # key of the name of a function that was a parameter


def write(folder: Path, description: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model to a new, an empty or a model folder."""
    _require_own_folder(folder)
    packed = pack_tensors({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    packed_digest = digest(packed)
    tensors = folder / f"{packed_digest[:16]}.safetensors"
    head = {
        "format": FORMAT,
        **_to_plain(description),
        "tensors": {"file": tensors.name, "sha256": packed_digest},
    }
    encoded = _encode(head | {"checksum": _checksum(head)})
    make_folder(folder)
    replace_file(tensors, packed)
    replace_file(folder / HEAD, encoded)
    for leftover in folder.iterdir():
        if _is_ours(leftover) and leftover.name not in (HEAD, tensors.name):
            leftover.unlink()


def _is_ours(path: Path) -> bool:
    """Whether the file was written by a save, also by one that was interrupted."""
    name = path.name.removesuffix(PENDING)
    return name == HEAD or re.fullmatch(r"[0-9a-f]{16}\.safetensors", name) is not None


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the arrays of a model folder, after checking both."""
    folder = current_version(folder) if (folder / CURRENT).is_file() else folder
    head = read_head(folder)
    tensors = folder / str(head["tensors"]["file"])
    try:
        packed = read_content(tensors)
    except Damage as error:
        raise damage_error(folder, str(error)) from error
    if digest(packed) != head["tensors"]["sha256"]:
        raise damage_error(folder, f"{tensors.name} is not what was written")
    try:
        return head, read_tensors(packed)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise damage_error(folder, f"{tensors.name} does not parse") from error


class Pointer(NamedTuple):
    """What ``current`` holds: a version, the digests of the log and of its ``model.json``.

    The digests are "" in a model of an earlier cilf.
    """

    name: str
    log: str = ""
    head: str = ""

    @property
    def version(self) -> int:
        return int(self.name)

    def format(self) -> bytes:
        return (" ".join(self) + "\n").encode()


POINTER = re.compile("([0-9]{4,9})(?: ([0-9a-f]{64}) ([0-9a-f]{64}))?\n?")


def read_pointer(folder: Path) -> Pointer:
    """Read ``current`` of a folder of versions."""
    try:
        text = read_content(folder / CURRENT).decode("ascii", errors="replace")
    except Damage as error:
        raise damage_error(folder, str(error)) from error
    found = POINTER.fullmatch(text)
    if found is None or not (folder / VERSIONS / found[1]).is_dir():
        name = (found[1] if found else text.strip())[:20]
        raise damage_error(folder, f"{CURRENT} names the version {name!r}, which is not there")
    return Pointer(*found.groups(default=""))


def current_version(folder: Path) -> Path:
    """The version that a folder of versions points at."""
    pointer = read_pointer(folder)
    version = folder / VERSIONS / pointer.name
    if pointer.head:
        require_digest(folder, version / HEAD, pointer.head)
    return version


def require_digest(folder: Path, file: Path, stated: str) -> bytes:
    """The content of a file of the model in a folder, which must have this digest."""
    try:
        content = read_content(file)
    except Damage as error:
        raise damage_error(folder, f"{file.parent.name}/{error}") from error
    if digest(content) != stated:
        raise damage_error(folder, f"{file.parent.name}/{file.name} is not what was written")
    return content


def _require_own_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"cannot save to {folder}: it is a file; name a new or empty folder.")
    if not folder.exists() or (folder / HEAD).exists():
        return
    foreign = [path.name for path in folder.iterdir() if not _is_ours(path)]
    if foreign:
        raise BadInput(
            f"cannot save to {folder}: it holds other things ({sorted(foreign)[0]}, ...); "
            "name a new, an empty or a model folder."
        )


def read_head(folder: Path) -> dict[str, Any]:
    """The description of a model, after checking it; no tensors are read."""
    if not (folder / HEAD).exists():
        what = f"has no {HEAD}" if folder.is_dir() else "is not a folder"
        raise BadInput(f"{folder} is not a model: it {what}; name a folder that save() wrote.")
    try:
        content = read_content(folder / HEAD)
        version = parse_document(content, HEAD, _Format)["format"]
        if version != FORMAT:
            remedy = "upgrade cilf" if version > FORMAT else "fit it again"
            raise BadInput(
                f"{folder} is a model of format {version}, this cilf reads format {FORMAT}: "
                f"{remedy}."
            )
        head = parse_document(content, HEAD, _Head)
    except Damage as error:
        raise damage_error(folder, str(error)) from error
    if head.pop("checksum") != _checksum(head):
        raise damage_error(folder, f"{HEAD} is not what was written")
    return head


class _Format(Document):
    """The part of the description that every format has."""

    format: int


class _Tensors(Document):
    """The file of the arrays, which lies beside the description."""

    file: Annotated[str, Field(pattern=r"^[0-9a-f]{16}\.safetensors$")]
    sha256: Digest


class _Head(_Format):
    """The schema of the description."""

    checksum: Digest
    learner: Text
    parameters: dict[Text, Any]
    classes: list[Text | int]
    instance_shape: list[Count]
    features: dict[str, Any] | None
    history: list[dict[str, Any]]
    state: Any
    compared_backbones: dict[Text, float] = Field(default_factory=dict)
    tensors: _Tensors


def damage_error(folder: Path, why: str) -> BadInput:
    """What a damaged model is answered with."""
    return BadInput(f"the model in {folder} is damaged ({why}): restore it from a copy.")


def _encode(head: Mapping[str, Any]) -> bytes:
    return json.dumps(head, indent=1, sort_keys=True, allow_nan=False).encode()


def _checksum(head: Mapping[str, Any]) -> str:
    return digest(_encode(head))


def _to_plain(description: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {name: _plain_value(name, v) for name, v in description["parameters"].items()}
    return {**description, "parameters": parameters}


def _plain_value(name: str, value: Any) -> Any:
    """A parameter as JSON; a function is noted by name and never loaded."""
    if callable(value):
        return {FUNCTION: getattr(value, "__qualname__", type(value).__name__)}
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadConfig(
            f"cannot save with {name}={value!r}: a model file holds numbers, strings, lists and "
            "functions; set the parameter to one of those."
        ) from error
    return plain


def require_function(name: str, value: Any, folder: Path) -> None:
    """Refuse to load a model that was made with a function, unless it is passed again."""
    if isinstance(value, dict) and FUNCTION in value:
        function = value[FUNCTION]
        raise BadConfig(
            f"the model in {folder} was made with your own {name} {function!r}: "
            f"pass it again, load(folder, {name}={function})."
        )
