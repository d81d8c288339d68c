"""The list of data sets and where they are; nothing is decoded or downloaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cilf.core.extras import is_installed
from cilf.data import local, named, table_files
from cilf.data.digits import load_digits
from cilf.data.named import Original
from cilf.data.options import Options
from cilf.errors import CilfError

EMBEDDED, LOCAL, REMOTE = "embedded", local.VARIABLE, "hub"
DAMAGED, NEEDS_EXTRA = f"damaged in {local.VARIABLE}", "needs cilf[data]"


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of the list; the rows are those found, else those of the original."""

    name: str
    about: str
    where: str
    n_classes: int
    instance_shape: tuple[int, ...]
    train_rows: int
    test_rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"here": self.where in (EMBEDDED, LOCAL)}

    def to_row(self) -> tuple[str, ...]:
        shape = " x ".join(map(str, self.instance_shape))
        rows = (f"{self.train_rows:,}", f"{self.test_rows:,}")
        return (self.name, str(self.n_classes), shape, *rows, self.where, self.about)


def list_datasets() -> list[DatasetEntry]:
    """List all data sets that have a name, the embedded one first."""
    return [_digits(), *(_describe(name, original) for name, original in named.ORIGINALS.items())]


def _digits() -> DatasetEntry:
    data = load_digits()
    rows = len(data.train), len(data.test)
    return DatasetEntry(
        "digits", "handwritten digits", EMBEDDED, len(data.classes), data.shape, *rows
    )


def _describe(name: str, original: Original) -> DatasetEntry:
    where, rows = _locate(name, original)
    return DatasetEntry(name, original.about, where, original.n_classes, original.shape, *rows)


def _locate(name: str, original: Original) -> tuple[str, tuple[int, int]]:
    folder = local.local_folder(original.folder)
    try:
        rows = _count_rows(folder, name) if folder else None
    except CilfError:
        return DAMAGED if is_installed("pyarrow") else NEEDS_EXTRA, original.rows
    if rows:
        return LOCAL, rows
    return REMOTE if is_installed("datasets") else NEEDS_EXTRA, original.rows


def _count_rows(folder: Path, name: str) -> tuple[int, int] | None:
    """Count the rows of both splits in a folder; None if it holds no data set."""
    parquet = [local.find_shards(folder, part) for part in ("train", "test")]
    if all(parquet):
        train, test = (table_files.read_parquet(shards, name).n_rows for shards in parquet)
        return train, test
    read = local.find_dataset(folder, name, Options())
    if read is None:
        return None
    data = read()
    return len(data.train), len(data.test)
