"""Data sets in the folder ``CILF_DATA``, each in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cilf.data import idx, npz, table_files, tables
from cilf.data.dataset import Dataset
from cilf.data.options import Options

VARIABLE = "CILF_DATA"

Read = Callable[[], Dataset]


def local_folder(name: str) -> Path | None:
    """The folder of a data set; None if CILF_DATA is not set."""
    root = os.environ.get(VARIABLE)
    return Path(root).expanduser() / name if root else None


def find_dataset(folder: Path, name: str, options: Options) -> Read | None:
    """Find the data set in a folder; returns a function that reads it, None if there is none."""
    found = (find(folder, name, options) for find in FORMS.values())
    return next((read for read in found if read is not None), None)


def describe_forms() -> str:
    """Describe the forms that a data set may have."""
    *first, last = FORMS
    return f"{', '.join(first)} or {last} files"


def find_shards(folder: Path, part: str) -> list[Path]:
    """Find the parquet files of a split, also in folders below, where the hub puts them."""
    return sorted(path for path in folder.rglob("*.parquet") if path.name.startswith(part))


def _find_parquet(folder: Path, name: str, options: Options) -> Read | None:
    train, test = find_shards(folder, "train"), find_shards(folder, "test")
    if not train:
        return None

    def read() -> Dataset:
        held_out = table_files.read_parquet(test, f"{name} (test)") if test else None
        rows = table_files.read_parquet(train, f"{name} (train)")
        return tables.to_dataset(name, rows, held_out, options)

    return read


def _find_npz(folder: Path, name: str, options: Options) -> Read | None:
    pair = folder / "train.npz", folder / "test.npz"
    if all(file.is_file() for file in pair):
        return partial(npz.read_npz_pair, *pair, name)
    packed = sorted(folder.glob("*.npz"))
    return partial(npz.read_npz, packed[0], name, options) if len(packed) == 1 else None


def _find_idx(folder: Path, name: str, options: Options) -> Read | None:
    return partial(idx.read_idx_folder, folder, name) if idx.has_idx_files(folder) else None


FORMS: dict[str, Callable[[Path, str, Options], Read | None]] = {
    "parquet": _find_parquet,
    "npz": _find_npz,
    "idx": _find_idx,
}
