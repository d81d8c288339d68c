"""Small parts of the named data sets, in every form that can be read."""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.core.types import Array
from cilf.data import named

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


Write = Callable[[Path, Array, Array, Array, Array], None]


def pictures(n: int, shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def encoded(image: Array) -> bytes:
    packed = io.BytesIO()
    Image.fromarray(image).save(packed, format="PNG")
    return packed.getvalue()


def write_parquet(path: Path, X: Array, y: Array, names: Iterable[str]) -> None:
    """As the hub writes an image classification set."""
    features = {
        "img": {"_type": "Image"},
        "fine_label": {"names": list(names), "_type": "ClassLabel"},
    }
    images = [{"bytes": encoded(image), "path": None} for image in X]
    table = pa.table(
        {
            "img": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            "fine_label": pa.array(y.tolist(), pa.int64()),
        }
    )
    info = json.dumps({"info": {"features": features}})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"huggingface": info}), path)


def as_parquet(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    names = [str(label) for label in named.ORIGINALS[folder.name].classes]
    half = len(X) // 2
    write_parquet(folder / "train-00000-of-00002.parquet", X[:half], y[:half], names)
    write_parquet(folder / "train-00001-of-00002.parquet", X[half:], y[half:], names)
    write_parquet(folder / "test-00000-of-00001.parquet", X_test, y_test, names)


def as_one_npz(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    np.savez(folder / "all.npz", x_train=X, y_train=y, x_test=X_test, y_test=y_test)


def as_two_npz(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    np.savez(folder / "train.npz", x=X, y=y)
    np.savez(folder / "test.npz", x=X_test, y=y_test)


def as_idx(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    parts = {"train-images-idx3": X, "train-labels-idx1": y}
    parts |= {"t10k-images-idx3": X_test, "t10k-labels-idx1": y_test}
    for name, array in parts.items():
        head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
        packed = gzip.compress(head + array.astype(np.uint8).tobytes())
        (folder / f"{name}-ubyte.gz").write_bytes(packed)


def write(
    root: Path,
    name: str,
    how: Write = as_one_npz,
    shape: tuple[int, ...] | None = None,
    each: int = 3,
) -> tuple[Array, Array]:
    """A small part of a named set: so many training instances of each class, one test instance."""
    original = named.ORIGINALS[name]
    n_classes = len(original.classes)
    y, y_test = np.arange(each * n_classes) % n_classes, np.arange(n_classes)
    X = pictures(len(y), shape or original.shape, seed=1)
    how(root / name, X, y, pictures(n_classes, shape or original.shape, seed=2), y_test)
    return X, y
