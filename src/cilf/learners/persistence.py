"""Model folders: JSON and safetensors with checksums, replaced atomically, never a pickle.

``model.json`` names its tensor file by the hash of the content. A save ends with one atomic
replacement of ``model.json``: the folder holds the old model before it and the new one after it.

A folder may also hold versions of a model side by side, ``versions/0001``, ``versions/0002``, ...,
each of which is a model folder. The file ``current`` names the one that is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as pack_tensors

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
    digest = hashlib.sha256(packed).hexdigest()
    tensors = folder / f"{digest[:16]}.safetensors"
    head = {
        "format": FORMAT,
        **_to_plain(description),
        "tensors": {"file": tensors.name, "sha256": digest},
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
        packed = tensors.read_bytes()
    except OSError as error:
        raise _damage_error(folder, f"{tensors.name} is missing") from error
    if hashlib.sha256(packed).hexdigest() != head["tensors"]["sha256"]:
        raise _damage_error(folder, f"{tensors.name} is not what was written")
    try:
        return head, read_tensors(packed)
    except SafetensorError as error:
        raise _damage_error(folder, f"{tensors.name} does not parse") from error


def current_version(folder: Path) -> Path:
    """The version that a folder of versions points at."""
    try:
        name = (folder / CURRENT).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _damage_error(folder, f"{CURRENT} cannot be read") from error
    if re.fullmatch("[0-9]{4,9}", name) is None or not (folder / VERSIONS / name).is_dir():
        raise _damage_error(
            folder, f"{CURRENT} names the version {name[:20]!r}, which is not there"
        )
    return folder / VERSIONS / name


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
    if not (folder / HEAD).is_file():
        what = f"has no {HEAD}" if folder.is_dir() else "is not a folder"
        raise BadInput(f"{folder} is not a model: it {what}; name a folder that save() wrote.")
    try:
        text = (folder / HEAD).read_text(encoding="utf-8")
        head = json.loads(text, parse_constant=_refuse_constant)
        version = head["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damage_error(folder, f"{HEAD} does not parse") from error
    if isinstance(version, int) and version != FORMAT:
        remedy = "upgrade cilf" if version > FORMAT else "fit it again"
        raise BadInput(
            f"{folder} is a model of format {version}, this cilf reads format {FORMAT}: {remedy}."
        )
    stated = head.pop("checksum", None)
    if stated != _checksum(head):
        raise _damage_error(folder, f"{HEAD} is not what was written")
    return dict(head)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _damage_error(folder: Path, why: str) -> BadInput:
    return BadInput(f"the model in {folder} is damaged ({why}): restore it from a copy.")


def _encode(head: Mapping[str, Any]) -> bytes:
    return json.dumps(head, indent=1, sort_keys=True, allow_nan=False).encode()


def _checksum(head: Mapping[str, Any]) -> str:
    return hashlib.sha256(_encode(head)).hexdigest()


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
