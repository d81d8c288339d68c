"""The formats that data of one's own may have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cilf.core.files import describe_missing
from cilf.data import folders, npz, table_files
from cilf.data.columns import Table
from cilf.data.pieces import divide_folder, divide_table
from cilf.data.pixels import is_image
from cilf.data.reader import Reader
from cilf.data.tables import table_reader
from cilf.errors import BadInput

FOLDER, SHARDS = "folder", "shards"


def divisible(reader: Reader) -> Reader:
    """The format of tables, with the pieces that parquet files have."""
    read = reader.read_table
    assert read is not None  # it is a format of tables
    return replace(reader, divide=lambda path, options: divide_table(read(path), options))


READERS: dict[str, Reader] = {
    FOLDER: replace(folders.READER, divide=divide_folder),
    SHARDS: divisible(table_reader("a folder of parquet files", table_files.read_shards)),
    "npz": npz.READER,
    "csv": table_reader("a table with commas", table_files.read_csv, ".csv"),
    "tsv": table_reader("a table with tabs", table_files.read_tsv, ".tsv"),
    "parquet": divisible(
        table_reader("a parquet table", table_files.read_parquet_file, ".parquet")
    ),
    "jsonl": table_reader("JSON lines", table_files.read_json_lines, ".jsonl", ".ndjson"),
}


def suffixes() -> list[str]:
    """The suffixes of all files that can be read."""
    return [suffix for reader in READERS.values() for suffix in reader.suffixes]


def suffix_of(path: Path) -> str:
    """The suffix of a file, without that of its compression.

    >>> suffix_of(Path("rows.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def describe_readers() -> str:
    """Describe all formats in one line."""
    described = (
        f"{reader.about} ({', '.join(reader.suffixes)})" if reader.suffixes else reader.about
        for reader in READERS.values()
    )  # fmt: skip
    return "; ".join(described)


def find_reader(path: Path) -> Reader:
    """Find the format of what lies under a path; a path that cannot be read is refused."""
    if path.is_dir():
        return READERS[SHARDS if _holds_shards(path) else FOLDER]
    if not path.exists():
        raise BadInput(f"{describe_missing(path)}: give the path of your data.")
    for reader in READERS.values():
        if suffix_of(path) in reader.suffixes:
            return reader
    raise BadInput(
        f"{path} has no suffix that can be read: give a folder, or a file with one of "
        f"{', '.join(suffixes())}."
    )


def _holds_shards(folder: Path) -> bool:
    """Whether a folder holds parquet files, and neither images nor folders beside them."""
    if not table_files.find_shards(folder):
        return False
    others = (entry for entry in folder.iterdir() if not entry.name.startswith("."))
    return not any(entry.is_dir() or is_image(entry) for entry in others)


def read_table(path: Path) -> Table:
    """Read a file as a table, as ``load_dataset`` and ``load_instances`` do."""
    reader = find_reader(path)
    if reader.read_table is None:
        tables = [suffix for r in READERS.values() if r.read_table for suffix in r.suffixes]
        raise BadInput(f"{path} holds no table: name a file with {', '.join(tables)}.")
    return reader.read_table(path)
