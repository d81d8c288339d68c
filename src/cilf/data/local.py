"""Data sets that lie in the folder ``CILF_DATA``, each in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cilf.data import idx, npz, tables
from cilf.data.dataset import Dataset
from cilf.data.options import Options

VARIABLE = "CILF_DATA"
FORMATS = "parquet, npz or idx files"


def local_folder(name: str) -> Path | None:
    """Where a data set would be; None if CILF_DATA is not set."""
    root = os.environ.get(VARIABLE)
    return Path(root).expanduser() / name if root else None


def reader(folder: Path, name: str, options: Options) -> Callable[[], Dataset] | None:
    """What reads the data set in this folder; None if there is none."""
    if train := shards(folder, "train"):
        return lambda: _from_parquet(name, train, shards(folder, "test"), options)
    pair = folder / "train.npz", folder / "test.npz"
    if all(file.is_file() for file in pair):
        return lambda: npz.read_npz_pair(*pair, name)
    packed = sorted(folder.glob("*.npz"))
    if len(packed) == 1:
        return lambda: npz.read_npz(packed[0], options, name)
    if idx.has_idx_files(folder):
        return lambda: idx.read_idx_folder(folder, name)
    return None


def shards(folder: Path, part: str) -> list[Path]:
    """The parquet files of a split, also in a folder below, as the hub has them."""
    return sorted(path for path in folder.rglob("*.parquet") if path.name.startswith(part))


def _from_parquet(name: str, train: list[Path], test: list[Path], options: Options) -> Dataset:
    held_out = tables.read_parquet(test, f"{name} (test)") if test else None
    read = tables.read_parquet(train, f"{name} (train)")
    return tables.to_dataset(name, read, held_out, options)
