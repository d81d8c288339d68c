"""Uploaded files: images, ZIP files of images, or one table.

Files are checked before they are kept, and never executed or unpickled. Their names are not
trusted: only the last part of a name is kept, without unsafe characters. Sizes are checked before
and after unpacking, so a small file cannot grow into a large one.
"""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from cilf.core.files import make_folder
from cilf.data.pixels import IMAGE_SUFFIXES, Unreadable, is_image, read_header, refuse_bombs
from cilf.data.readers import read_table, suffixes
from cilf.data.table_files import open_parquet
from cilf.errors import BadInput

UPLOADS = "uploads"  # folder of the store
MEGA = 1 << 20
MAX_BYTES = 512 * MEGA  # of all files, compressed
MAX_UNPACKED = 2048 * MEGA  # of all files, unpacked
MAX_FILES = 100_000
MAX_PIXELS = 50_000_000  # of one image
MAX_ROWS = 5_000_000  # of a table: few bytes can repeat a row very often
MAX_NAME = 200  # bytes: file systems take 255
CHUNK = MEGA
IMAGES = tuple(sorted(IMAGE_SUFFIXES))
TABLES = tuple(suffixes())
ZIP = ".zip"
ACCEPTED = (*IMAGES, ZIP, *TABLES)
DAMAGED = (  # errors of zipfile on damaged or encrypted files
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError,
    UnicodeDecodeError, NotImplementedError, RuntimeError, IndexError,
)  # fmt: skip


class TooLarge(BadInput):
    """The upload is too large."""


Upload = tuple[str, BinaryIO]  # the sender's name of the file, its content


def save(uploads: Iterable[Upload], folder: Path, *, keeps_folders: bool = False) -> Path:
    """Check and save files. Returns the folder of images, or the path of the table.

    Args:
        keeps_folders: keep the folders of ZIP files, because they name the classes.

    Nothing is saved if anything is refused.
    """
    make_folder(folder)
    try:
        return _save_all(list(uploads), folder, keeps_folders)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _save_all(uploads: list[Upload], folder: Path, keeps_folders: bool) -> Path:
    if not uploads:
        raise BadInput("files: choose images, a ZIP file of images, or one table.")
    if len(uploads) > MAX_FILES:
        raise TooLarge(f"files: {len(uploads)} are more than {MAX_FILES}: send fewer.")
    if {Path(name.lower()).suffix for name, _ in uploads} & set(TABLES):
        if len(uploads) > 1:
            raise BadInput("files: give one table, or images, not both.")
        return _save_table(*uploads[0], folder)
    left, names = MAX_BYTES, _Names(folder, keeps_folders)
    for name, content in uploads:
        if Path(name.lower()).suffix == ZIP:
            left -= _unzip(name, content, names)
        else:
            left -= _save_image(name, content, names)
        if left < 0:
            raise TooLarge(f"files: more than {MAX_BYTES // MEGA} MB in all: send fewer.")
    if not names.counts:
        raise BadInput("files: there is no image in them: send images, or one table.")
    return _skip_single_folders(folder) if keeps_folders else folder


def _skip_single_folders(folder: Path) -> Path:
    """The folder that holds the class folders: many ZIP files have one folder above them."""
    inside = list(folder.iterdir())
    while len(inside) == 1 and inside[0].is_dir():
        below = list(inside[0].iterdir())
        if not any(path.is_dir() for path in below):
            break
        folder, inside = inside[0], below
    return folder


# ----------------------------------------------------------------- names


def safe_name(name: str) -> str:
    r"""The last part of a name, without characters that are unsafe in a path.

    >>> safe_name("../../etc/cron.d/evil.png"), safe_name("C:\\photos\\a b.PNG")
    ('evil.png', 'a b.PNG')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    clean = re.sub(r"[^\w .()+,@=-]", "_", last).strip(" .")
    clean = clean.encode()[-MAX_NAME:].decode(errors="ignore").lstrip(" .")
    if not clean or not Path(clean).stem.strip("_ .") or not Path(clean).suffix:
        raise BadInput(f"the file name {name[:80]!r} cannot be used: rename the file.")
    return clean


def safe_folder(name: str) -> str:
    r"""The name of a folder without characters that are unsafe in a path.

    >>> safe_folder("hens & co"), safe_folder("C:")
    ('hens _ co', 'C_')
    """
    clean = re.sub(r"[^\w .()+,@=-]", "_", name).strip(" .").encode()[:MAX_NAME]
    folder = clean.decode(errors="ignore").strip(" .")
    if not folder:
        raise BadInput(f"the folder name {name[:80]!r} cannot be used: rename the folder.")
    return folder


class _Names:
    """Paths in a folder, each used once."""

    def __init__(self, folder: Path, keeps_folders: bool = False) -> None:
        self.folder, self.keeps_folders = folder, keeps_folders
        self.counts: dict[str, int] = {}  # path -> number of files that have it

    def path(self, name: str) -> Path:
        above = self._find_folder(name)
        clean = free = safe_name(name)
        while self._key(above, free) in self.counts:
            key = self._key(above, clean)
            number = self.counts[key] = self.counts[key] + 1
            free = f"{Path(clean).stem}-{number}{Path(clean).suffix}"
        self.counts[self._key(above, free)] = 1
        make_folder(above)
        return above / free

    def _find_folder(self, name: str) -> Path:
        if not self.keeps_folders:
            return self.folder
        parts = PurePosixPath(name.replace("\\", "/")).parts[:-1]
        return self.folder.joinpath(
            *(safe_folder(part) for part in parts if part not in ("/", ".", ".."))
        )

    def _key(self, above: Path, name: str) -> str:
        return str(above.relative_to(self.folder) / name).lower()


# ----------------------------------------------------------------- images


def _save_image(name: str, content: BinaryIO, names: _Names) -> int:
    if Path(name.lower()).suffix not in IMAGES:
        known = ", ".join(ACCEPTED)
        raise BadInput(f"{safe_name(name)} has an unknown suffix: give one of {known}.")
    path = names.path(name)
    size = _copy(content, path, MAX_BYTES)
    _check_image(path)
    return size


def _check_image(path: Path) -> None:
    """Refuse a file that is not an image, or a very large one. Only its header is read."""
    with refuse_bombs():
        header = read_header(path)
    if isinstance(header, Unreadable):
        raise BadInput(f"{path.name} is not a readable image ({header.reason}): leave it out.")
    height, width = header.size
    if width * height > MAX_PIXELS:
        raise TooLarge(
            f"{path.name} has {width} x {height} pixels, more than {MAX_PIXELS:,}: shrink it."
        )


def _copy(content: BinaryIO, path: Path, most: int) -> int:
    size = 0
    with path.open("wb") as file:
        while chunk := content.read(CHUNK):
            size += len(chunk)
            if size > most:
                raise TooLarge(f"{path.name} is larger than {most // MEGA} MB: send less.")
            file.write(chunk)
    return size


def _unzip(name: str, content: BinaryIO, names: _Names) -> int:
    """Save the images of a ZIP file. Other files in it are ignored."""
    with _open_zip(name, content) as archive:
        members = [member for member in archive.infolist() if _is_wanted(member)]
        _check_sizes(safe_name(name), members)
        left = MAX_UNPACKED
        for member in members:
            path = names.path(member.filename)
            try:
                with archive.open(member) as file:
                    left -= _copy(file, path, min(left, member.file_size))  # type: ignore[arg-type]
            except DAMAGED as e:
                raise BadInput(f"{safe_name(name)} is damaged or encrypted: pack it anew.") from e
            _check_image(path)
        return sum(member.compress_size for member in members)


def _open_zip(name: str, content: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(content)
    except (*DAMAGED, ValueError) as error:
        raise BadInput(f"{safe_name(name)} is not a ZIP file: pack it anew.") from error


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    hidden = any(part.startswith((".", "__")) for part in path.parts if part != "..")
    return not member.is_dir() and not hidden and path.suffix.lower() in IMAGES


def _check_sizes(name: str, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MAX_FILES:
        raise TooLarge(f"{name} holds {len(members)} images, more than {MAX_FILES}: send less.")
    if sum(member.file_size for member in members) > MAX_UNPACKED:
        most = MAX_UNPACKED // MEGA
        raise TooLarge(f"{name} would take more than {most} MB unpacked: send less.")


# ----------------------------------------------------------------- tables


def _save_table(name: str, content: BinaryIO, folder: Path) -> Path:
    path = _Names(folder).path(name)
    _copy(content, path, MAX_BYTES)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with path.open("rb") as file, _open_zip(name, file) as archive:
            _check_sizes(path.name, archive.infolist())
        return path
    if suffix == ".parquet":
        _check_parquet(path)
    table = read_table(path)
    _refuse_paths(path, table.features)
    for batch in table.batches(list(table.features)):
        _refuse_paths(path, _find_texts(batch.to_pylist()))
    return path


def _check_parquet(path: Path) -> None:
    try:
        with open_parquet(path) as file:
            about = file.metadata
            size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    except Exception as error:
        raise BadInput(f"{path.name} is not a readable parquet file: write it anew.") from error
    if size > MAX_UNPACKED:
        raise TooLarge(f"{path.name} would take more than {MAX_UNPACKED // MEGA} MB: send less.")
    if about.num_rows > MAX_ROWS:
        raise TooLarge(f"{path.name} has more than {MAX_ROWS:,} rows: send fewer.")


def _find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):  # an image in a table has bytes, and a name that is not used
        unused = {"path"} if isinstance(value.get("bytes"), bytes) else set()
        yield from _find_texts([cell for name, cell in value.items() if name not in unused])
    elif isinstance(value, list):
        for cell in value:
            yield from _find_texts(cell)


def _refuse_paths(path: Path, cells: Iterable[str]) -> None:
    """Refuse a table that names files of this machine: the page would show them."""
    for cell in cells:
        if is_image(Path(cell.strip())):
            raise BadInput(
                f"{path.name} names image files ({cell.strip()[:60]!r}): send the images "
                "themselves, or give the path of the table."
            )
