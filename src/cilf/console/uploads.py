"""Files that somebody sends: looked at before they are kept, never executed or unpickled.

Images one by one or in a ZIP file, or one table. Their names are not trusted: only the last part
of each is kept, and only if it is harmless. Sizes are checked as they are, compressed or not, so
that a small file cannot grow into a large one.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from cilf.core.extras import optional
from cilf.core.files import make_folder
from cilf.data.pixels import IMAGE_SUFFIXES, Unreadable, read_header, refuse_bombs
from cilf.errors import BadInput

MEGA = 1 << 20
MOST_BYTES = 512 * MEGA  # of all files, as they come
MOST_UNPACKED = 2048 * MEGA  # of all files, without compression
MOST_FILES = 100_000
MOST_PIXELS = 50_000_000  # of one image
MOST_ROWS = 5_000_000  # of a table: few bytes can say the same row very often
LONGEST = 200  # bytes of a name: file systems take 255
CHUNK = MEGA
IMAGES = tuple(sorted(IMAGE_SUFFIXES))
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".npz")
ZIP = ".zip"
DAMAGED = (  # what zipfile raises on damaged or encrypted files
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError,
    UnicodeDecodeError, NotImplementedError, RuntimeError, IndexError,
)  # fmt: skip


class TooLarge(BadInput):
    """More than is taken."""


Upload = tuple[str, BinaryIO]  # what the sender calls it, its content


def keep(uploads: Iterable[Upload], folder: Path) -> Path:
    """Check files and keep them; the folder of images, or the table, to detect in.

    Nothing is kept if anything is refused.
    """
    make_folder(folder)
    try:
        return _kept(list(uploads), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _kept(uploads: list[Upload], folder: Path) -> Path:
    if not uploads:
        raise BadInput("files: choose images, a ZIP file of images, or one table.")
    if len(uploads) > MOST_FILES:
        raise TooLarge(f"files: {len(uploads)} are more than {MOST_FILES}: send fewer.")
    kinds = {Path(name.lower()).suffix for name, _ in uploads}
    if kinds & set(TABLES):
        if len(uploads) > 1:
            raise BadInput("files: give one table, or images, not both.")
        return _table(*uploads[0], folder)
    left, taken = MOST_BYTES, _Names(folder)
    for name, content in uploads:
        if Path(name.lower()).suffix == ZIP:
            left -= _unzip(name, content, taken)
        else:
            left -= _image(name, content, taken)
        if left < 0:
            raise TooLarge(f"files: more than {MOST_BYTES // MEGA} MB in all: send fewer.")
    if not taken.used:
        raise BadInput("files: there is no image in them: send images, or one table.")
    return folder


# ----------------------------------------------------------------- names


def safe_name(name: str) -> str:
    r"""The last part of a name, with nothing in it that a path could be made of.

    >>> safe_name("../../etc/cron.d/evil.png"), safe_name("C:\\photos\\a b.PNG")
    ('evil.png', 'a b.PNG')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    clean = re.sub(r"[^\w .()+,@=-]", "_", last).strip(" .")
    clean = clean.encode()[-LONGEST:].decode(errors="ignore").lstrip(" .")
    if not clean or not Path(clean).stem.strip("_ .") or not Path(clean).suffix:
        raise BadInput(f"the file name {name[:80]!r} cannot be used: rename the file.")
    return clean


class _Names:
    """Paths in a folder, each given out once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used: dict[str, int] = {}  # a name -> how often it was asked for

    def path(self, name: str) -> Path:
        clean = free = safe_name(name)
        while free.lower() in self.used:
            number = self.used[clean.lower()] = self.used[clean.lower()] + 1
            free = f"{Path(clean).stem}-{number}{Path(clean).suffix}"
        self.used[free.lower()] = 1
        return self.folder / free


# ----------------------------------------------------------------- images


def _image(name: str, content: BinaryIO, taken: _Names) -> int:
    if Path(name.lower()).suffix not in IMAGES:
        known = ", ".join((*IMAGES, ZIP, *TABLES))
        raise BadInput(f"{safe_name(name)} is no kind of file this takes: give one of {known}.")
    path = taken.path(name)
    size = _copied(content, path, MOST_BYTES)
    _check_image(path)
    return size


def _check_image(path: Path) -> None:
    """Refuse what is no image, or would be a very large one; only its head is read."""
    with refuse_bombs():
        head = read_header(path)
    if isinstance(head, Unreadable):
        raise BadInput(f"{path.name} is no image that can be read ({head.reason}): leave it out.")
    height, width = head.size
    if width * height > MOST_PIXELS:
        raise TooLarge(
            f"{path.name} has {width} x {height} pixels, more than {MOST_PIXELS:,}: shrink it."
        )


def _copied(content: BinaryIO, path: Path, most: int) -> int:
    size = 0
    with path.open("wb") as file:
        while chunk := content.read(CHUNK):
            size += len(chunk)
            if size > most:
                raise TooLarge(f"{path.name} is larger than {most // MEGA} MB: send less.")
            file.write(chunk)
    return size


def _unzip(name: str, content: BinaryIO, taken: _Names) -> int:
    """The images in a ZIP file; what else is in it is left there."""
    with _opened(name, content) as packed:
        members = [member for member in packed.infolist() if _is_wanted(member)]
        _check_sizes(safe_name(name), members)
        left = MOST_UNPACKED
        for member in members:
            path = taken.path(member.filename)
            try:
                with packed.open(member) as file:
                    left -= _copied(file, path, min(left, member.file_size))  # type: ignore[arg-type]
            except DAMAGED as e:
                raise BadInput(f"{safe_name(name)} is damaged or encrypted: pack it anew.") from e
            _check_image(path)
        return sum(member.compress_size for member in members)


def _opened(name: str, content: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(content)
    except (*DAMAGED, ValueError) as error:
        raise BadInput(f"{safe_name(name)} is no ZIP file: pack it anew.") from error


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    hidden = any(part.startswith((".", "__")) for part in path.parts if part != "..")
    return not member.is_dir() and not hidden and path.suffix.lower() in IMAGES


def _check_sizes(name: str, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MOST_FILES:
        raise TooLarge(f"{name} holds {len(members)} images, more than {MOST_FILES}: send less.")
    if sum(member.file_size for member in members) > MOST_UNPACKED:
        most = MOST_UNPACKED // MEGA
        raise TooLarge(f"{name} would take more than {most} MB unpacked: send less.")


# ----------------------------------------------------------------- tables


def _table(name: str, content: BinaryIO, folder: Path) -> Path:
    path = _Names(folder).path(name)
    _copied(content, path, MOST_BYTES)
    kind = path.suffix.lower()
    if kind == ".npz":
        with path.open("rb") as file, _opened(name, file) as packed:
            _check_sizes(path.name, packed.infolist())
    elif kind == ".parquet":
        _check_parquet(path)
    else:
        _refuse_paths(path, _cells(path))
    return path


def _check_parquet(path: Path) -> None:
    parquet = optional("pyarrow.parquet", extra="data", purpose="reading parquet")
    try:
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
            if size > MOST_UNPACKED:
                most = MOST_UNPACKED // MEGA
                raise TooLarge(f"{path.name} would take more than {most} MB: send less.")
            if about.num_rows > MOST_ROWS:
                raise TooLarge(f"{path.name} has more than {MOST_ROWS:,} rows: send fewer.")
            for batch in file.iter_batches(batch_size=1000):
                _refuse_paths(path, (v for v in _texts(batch.to_pylist())))
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"{path.name} is no readable parquet file: write it anew.") from error


def _cells(path: Path) -> Iterator[str]:
    """All texts of a CSV file or of JSON lines."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() in (".csv", ".tsv"):
                for row in csv.reader(io.StringIO(file.read().replace("\t", ","))):
                    yield from row
            else:
                for line in file:
                    yield from _texts(json.loads(line) if line.strip() else None)
    except (ValueError, csv.Error, RecursionError) as error:
        raise BadInput(f"{path.name} is no table that can be read: save it as UTF-8.") from error


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):  # an image in a table has bytes, and a name that is not used
        own = {"path"} if isinstance(value.get("bytes"), bytes) else set()
        for name, part in value.items():
            if name not in own:
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _refuse_paths(path: Path, cells: Iterable[str]) -> None:
    """A table that was sent may not name files of this machine: they would be shown."""
    for cell in cells:
        if cell.strip().lower().endswith(IMAGES):
            raise BadInput(
                f"{path.name} names image files ({cell.strip()[:60]!r}): send the images "
                "themselves, or point to the table where it lies."
            )
