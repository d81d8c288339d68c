"""Data of one's own under a path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cilf.data.dataset import Dataset, Instances
from cilf.data.options import Options
from cilf.data.pieces import Pieces
from cilf.data.reader import Reader
from cilf.data.readers import find_reader, suffix_of, suffixes
from cilf.errors import BadInput

FORMAT_OPTIONS = ("label", "column", "columns", "size")  # options that not every format takes


def lies_inside(out: Path, data: str) -> bool:
    """Whether ``out`` lies in the folder ``data``, whose files would then include the output."""
    folder = Path(data).expanduser()
    return bool(data) and folder.is_dir() and out.resolve().is_relative_to(folder.resolve())


def looks_like_path(text: str) -> bool:
    """Whether a text is meant as a path, whether or not something lies there.

    >>> [looks_like_path(text) for text in ("photos/", "~me", "rows.csv", "notes.txt", "mnist")]
    [True, True, True, True, False]
    """
    has_mark = "/" in text or "\\" in text or text.startswith((".", "~"))
    return has_mark or Path(text).suffix != "" or (text != "" and _exists(Path(text)))


def plain_name(path: Path) -> str:
    """The name of the data under a path.

    >>> plain_name(Path("a/rows.csv.gz")), plain_name(Path("photos.2024"))
    ('rows', 'photos.2024')
    """
    if path.name in ("", ".."):
        return path.resolve().name
    if suffix_of(path) not in suffixes():
        return path.name
    return Path(path.name[:-3] if path.name.lower().endswith(".gz") else path.name).stem


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is too long, or the folder above cannot be entered
        return False


def require_data(path: Path) -> None:
    """Refuse a path where nothing lies, or nothing that can be read."""
    with _report_os_errors(path):
        find_reader(path)


def check_dataset(path: Path, options: Options) -> None:
    """Refuse labelled data for what is wrong on the surface; no instance is read."""
    with _report_os_errors(path):
        reader = find_reader(path)
        _refuse_options(reader, path, options)
        if reader.check is not None:
            reader.check(path, options)


def read_dataset(path: Path, options: Options) -> Dataset:
    """Read labelled data; see ``READERS`` for the formats."""
    with _report_os_errors(path):
        reader = find_reader(path)
        _refuse_options(reader, path, options)
        return reader.read_dataset(path, plain_name(path), options)


def read_instances(path: Path, options: Options) -> Instances:
    """Read unlabelled data; labels are ignored."""
    with _report_os_errors(path):
        reader = find_reader(path)
        _refuse_options(reader, path, options)
        return reader.read_instances(path, options)


def divide_instances(path: Path, options: Options) -> Pieces | None:
    """Divide unlabelled data into pieces; None if one process has to read them."""
    with _report_os_errors(path):
        reader = find_reader(path)
        _refuse_options(reader, path, options)
        return None if reader.divide is None else reader.divide(path, options)


def _refuse_options(reader: Reader, path: Path, options: Options) -> None:
    options.refuse(
        *(name for name in FORMAT_OPTIONS if name not in reader.options), where=str(path)
    )


@contextmanager
def _report_os_errors(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one line that names the file."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or path, error.strerror or error
        raise BadInput(f"{where} cannot be read ({reason}): check its name and rights.") from error
