"""A user's own data: what lies under a path decides how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cilf.data import folders, images, npz, tables
from cilf.data.dataset import Dataset, Instances
from cilf.data.options import Options
from cilf.errors import BadInput

PACKED = ".npz"
TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
KINDS = (PACKED, *TABLES)


def lies_inside(out: Path, data: str) -> bool:
    """Whether something would be written into a folder of images: the next time it were data."""
    folder = Path(data).expanduser()
    return bool(data) and folder.is_dir() and out.resolve().is_relative_to(folder.resolve())


def looks_like_path(text: str) -> bool:
    """Whether this is meant as a path, be it there or not."""
    named_as_one = "/" in text or "\\" in text or _kind(Path(text)) in KINDS
    return named_as_one or (text != "" and _exists(Path(text)))


def plain_name(path: Path) -> str:
    """What to call the data under a path.

    >>> plain_name(Path("a/rows.csv.gz")), plain_name(Path("photos.2024"))
    ('rows', 'photos.2024')
    """
    if path.name in ("", ".."):
        return path.resolve().name
    if _kind(path) not in KINDS:
        return path.name
    return Path(path.name[:-3] if path.name.lower().endswith(".gz") else path.name).stem


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False


def read_dataset(path: Path, options: Options) -> Dataset:
    """Labelled data: class folders, npz, or a table with a label column."""
    with _reachable(path):
        if path.is_dir():
            options.refuse("label", "column", where=str(path))
            return images.decoded_dataset(
                plain_name(path), folders.read_folder(path, options), options
            )
        _require_file(path)
        if _kind(path) == PACKED:
            options.refuse("label", "column", "size", where=str(path))
            return npz.read_npz(path, options, plain_name(path))
        return tables.to_dataset(plain_name(path), tables.read_file(path), None, options)


def read_instances(path: Path, options: Options) -> Instances:
    """Unlabelled data: a folder of images, npz or a table; labels are ignored."""
    with _reachable(path):
        if path.is_dir():
            options.refuse("column", "columns", where=str(path))
            return images.decoded_instances(folders.read_flat_folder(path, options), options)
        _require_file(path)
        if _kind(path) == PACKED:
            options.refuse("column", "columns", "size", where=str(path))
            return npz.npz_instances(path)
        return tables.to_instances(tables.read_file(path), options)


@contextmanager
def _reachable(path: Path) -> Iterator[None]:
    """What the system says about a file or folder, in one line that names it."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or path, error.strerror or error
        raise BadInput(f"{where} cannot be read ({reason}): check its name and rights.") from error


def _require_file(path: Path) -> None:
    if not path.exists():
        raise BadInput(f"{path} is not there: give a folder or a file, or see 'cilf data'.")
    if _kind(path) not in KINDS:
        known = ", ".join(KINDS)
        raise BadInput(f"{path} is no kind of file this reads: give a folder, or one of {known}.")


def _kind(path: Path) -> str:
    """The suffix of a file, without that of its compression."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
