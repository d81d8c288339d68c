"""Files and folders: atomic writes, and words for what is missing.

After a kill a file is either whole or as it was before.
"""

from __future__ import annotations

import ctypes
import difflib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cilf.core.reading import is_allowed
from cilf.errors import BadInput

PENDING = ".pending"  # suffix of a file that is still being written
FORMER = ".former"  # suffix of a folder that is being replaced
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically, and wait until it is on disk."""
    write_file(path, lambda file: file.write(content))


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically by a function, and wait until it is on disk."""
    pending = path.with_name(path.name + PENDING)
    with pending.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    pending.replace(path)
    _sync_folder(path.parent)


@contextmanager
def explain_write_errors(place: Path) -> Iterator[None]:
    """Turn the system's errors of writing inside the block into one line that names the place."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"cannot write to {place} ({reason}): make room, or name another."
        ) from error


def describe_missing(typed: str | Path, kind: str = "folder or file") -> str:
    """Say that nothing lies under a path, with the name beside it that is most like it.

    >>> describe_missing("no such place/photos")
    'there is no folder or file no such place/photos'
    """
    if not str(typed):
        return f"there is no {kind} without a name"
    path, near = Path(typed), list[str]()
    with suppress(OSError):  # the folder above is not there, or may not be read
        beside = path.parent.iterdir() if is_allowed(path.parent) else ()
        near = difflib.get_close_matches(path.name, [other.name for other in beside], n=1)
    hint = f" (did you mean {path.with_name(near[0])}?)" if near else ""
    return f"there is no {kind} {path}{hint}"


def put_folder(pending: Path, place: Path) -> None:
    """Rename a folder of whole files to a free name, and wait until that is on disk."""
    _sync_folder(pending)
    pending.rename(place)
    _sync_folder(place.parent)


def swap_folders(pending: Path, place: Path) -> None:
    """Exchange two folders, and wait until that is on disk. At no moment is the place empty.

    Where the system cannot do this at once, a killed process leaves nothing in the place, and the
    former folder under the name of the new one with another suffix: see :func:`restore_folder`.
    """
    _sync_folder(pending)
    if not _exchange(pending, place):
        former = pending.with_suffix(FORMER)
        place.rename(former)
        pending.rename(place)
        former.rename(pending)
    _sync_folder(place.parent)


def restore_folder(pending: Path, place: Path) -> None:
    """Put the former folder back if a process was killed while it swapped it."""
    former = pending.with_suffix(FORMER)
    if former.is_dir() and not place.exists():
        former.rename(place)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two paths at once, if the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    failed: int = rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    return failed == 0


def make_folder(path: Path) -> None:
    """Make a folder and its parents, if they do not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make {path} ({error.strerror}): name another folder.") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
