"""Arrays in ``.npz`` files of numpy: x and y, or x_train, y_train, x_test and y_test."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cilf.core import validation
from cilf.core.near_duplicates import group_near_duplicates
from cilf.core.notices import warn_once
from cilf.core.reading import open_file
from cilf.core.types import Array
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.options import Options
from cilf.data.reader import Reader
from cilf.data.split import hold_out, parse_split
from cilf.errors import BadInput

X_NAMES = {"x", "data", "image", "images", "features"}
Y_NAMES = {"y", "label", "labels", "target", "targets"}


def read_npz(path: Path, name: str, options: Options) -> Dataset:
    """Read the data set in a file; identities are those of :mod:`cilf.data.tables`."""
    arrays = _arrays(path)
    if any(part for part, _ in arrays):
        return _read_splits(path, arrays, name)
    X, y = _get(path, arrays, "")
    validation.known_classes(y, name=f"{path}: y")
    ids = _identities(path, len(y))
    group = group_near_duplicates(X)
    test = hold_out(y, options.test_share, where=str(path), group=group)
    return Dataset(
        name,
        train=Split(X[~test], y[~test], ids[~test]),
        test=Split(X[test], y[test], ids[test]),
    )


def read_npz_pair(train: Path, test: Path, name: str) -> Dataset:
    """Read the data set whose training and test arrays, x and y, lie in two files."""
    pairs = [_get(path, _arrays(path), "") for path in (train, test)]
    return _join(f"{train} and {test}", *pairs, name=name)


def read_npz_instances(path: Path, options: Options) -> Instances:
    """Read the array x of a file, whatever else the file holds."""
    arrays = _arrays(path)
    if ("", "x") not in arrays:
        raise BadInput(f"{path} lacks x (it holds {_list(arrays)}): save the instances as x.")
    X = _check_instances(path, arrays["", "x"])
    return Instances(X, _identities(path, len(X)))


def _read_splits(path: Path, arrays: Mapping[tuple[str, str], Array], name: str) -> Dataset:
    test = "val" if ("val", "x") in arrays and ("test", "x") not in arrays else "test"
    if unused := {key: array for key, array in arrays.items() if key[0] not in ("train", test)}:
        warn_once(f"{path}: not used beside a training and a test part: {_list(unused)}.")
    pairs = [_get(path, arrays, part) for part in ("train", test)]
    return _join(str(path), *pairs, name=name)


def _join(
    where: str, train: tuple[Array, Array], test: tuple[Array, Array], *, name: str
) -> Dataset:
    validation.known_classes(train[1], name=f"{where}: y of the training part")
    if train[0].dtype != test[0].dtype:
        raise BadInput(
            f"{where}: the training part holds {train[0].dtype}, the test part {test[0].dtype}: "
            "save both alike."
        )
    try:
        return Dataset.from_arrays(name, *train, *test)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _arrays(path: Path) -> dict[tuple[str, str], Array]:
    """Read the arrays of a file by part ("", "train", "test", "val") and role ("x", "y")."""
    stored = _load(path)
    arrays: dict[tuple[str, str], Array] = {}
    for key, array in stored.items():
        role = _role(key)
        if role in arrays:
            raise BadInput(f"{path} holds {key!r} twice, under two names: remove one of them.")
        if role is not None:
            arrays[role] = array
    if not any(what == "x" for _, what in arrays):
        raise BadInput(
            f"{path} holds {', '.join(stored) or 'nothing'}: give x and y, or x_train, y_train, "
            "x_test and y_test."
        )
    return arrays


def _role(key: str) -> tuple[str, str] | None:
    words = re.split("[_-]", key.lower())
    splits = [(word, parse_split(word)) for word in words]
    parts = ["val" if word.startswith("val") else split for word, split in splits if split]
    names = [word for word, split in splits if split is None]
    if len(parts) > 1 or len(names) != 1 or names[0] not in X_NAMES | Y_NAMES:
        return None
    return "".join(parts), "x" if names[0] in X_NAMES else "y"


def _load(path: Path) -> dict[str, Array]:
    try:
        with open_file(path) as file:
            if file.read(2) != b"PK":  # numpy would read anything else as a pickle
                raise BadInput(f"{path} is no npz file: write it with numpy.savez.")
            file.seek(0)
            with np.load(file, allow_pickle=False) as loaded:
                return {key: loaded[key] for key in loaded.files if _role(key) is not None}
    except BadInput:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadInput(_explain(path, error)) from error


def _explain(path: Path, error: Exception) -> str:
    if "allow_pickle" in str(error):
        return f"{path} holds an array of Python objects: save numbers and strings only."
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0].rstrip(".")
    return f"{path} cannot be read ({reason}): check the path, or write the file again."


def _get(path: Path, arrays: Mapping[tuple[str, str], Array], part: str) -> tuple[Array, Array]:
    end = f"_{part}" if part else ""
    for what in "xy":
        if (part, what) not in arrays:
            raise BadInput(f"{path} lacks {what}{end} (it holds {_list(arrays)}): add it.")
    X = _check_instances(path, arrays[part, "x"])
    return X, _to_labels(arrays[part, "y"], len(X), f"{path}: y{end}")


def _check_instances(path: Path, X: Array) -> Array:
    if X.ndim == 4 and X.shape[1] in (1, 3) and X.shape[3] not in (1, 3, 4):
        raise BadInput(
            f"{path}: images have shape {X.shape[1:]}, channels first: transpose them to "
            "(height, width, channels), with numpy.moveaxis(x, 1, -1)."
        )
    return validation.instances(X, name=f"{path}: x")


def _to_labels(y: Array, n: int, name: str) -> Array:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise BadInput(f"{name} has shape {y.shape}: give one label for each instance.")
    if y.dtype.kind == "S":
        y = _decode(y, name)
    if y.dtype.kind == "f" and (y == np.round(y)).all() and (np.abs(y) < 2.0**63).all():
        y = y.astype(np.int64)
    return validation.labels(y, n=n, name=name)


def _decode(y: Array, name: str) -> Array:
    try:
        return np.char.decode(y, "utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 ({error.reason}): save the labels as str.") from error


def _identities(path: Path, n: int) -> Array:
    return np.array([f"{path.name}:{row}" for row in range(n)])


def _list(arrays: Mapping[tuple[str, str], Array]) -> str:
    return ", ".join(f"{what}_{part}" if part else what for part, what in arrays)


READER = Reader(
    about="numpy arrays",
    suffixes=(".npz",),
    read_dataset=read_npz,
    read_instances=read_npz_instances,
)
