"""The one way to open a file that somebody else has named.

Only regular files are opened: a pipe or a device could block for ever. A process may restrict
itself to some folders. The rule is tested on the file that was opened, so that neither a link nor a
change of the path in between leads elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DESCRIPTORS = Path("/proc/self/fd")  # links to the open files of this process, on Linux
OUTSIDE = "outside of what may be read"
NO_FILE = "not a regular file"

_folders: tuple[Path, ...] | None = None  # of the process, since decoders run in threads of it


@contextmanager
def restricted_reading(folders: Iterable[Path] | None) -> Iterator[None]:
    """Let this process read from these folders only, inside the block. None is all folders."""
    global _folders
    before = _folders
    _folders = None if folders is None else tuple(folder.resolve() for folder in folders)
    try:
        yield
    finally:
        _folders = before


def open_file(path: Path) -> BinaryIO:
    """Open a regular file that may be read.

    An ``OSError`` says why a file is not opened.
    """
    if _folders is not None and not _is_inside(path.resolve()):  # not even opened
        raise PermissionError(errno.EACCES, OUTSIDE, str(path))
    file = open_regular_file(path)
    try:
        if _folders is not None and not _is_inside(_locate(file.fileno(), path)):
            raise PermissionError(errno.EACCES, OUTSIDE, str(path))
    except BaseException:
        file.close()
        raise
    return file


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file wherever it lies, such as one of our own files.

    An ``OSError`` says why a file is not opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, NO_FILE, str(path))
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_readable(path: Path) -> bool:
    """Whether :func:`open_file` opens the path."""
    with suppress(OSError, ValueError), open_file(path):
        return True
    return False


def is_allowed(path: Path) -> bool:
    """Whether the rule of this process lets it look at a path."""
    return _is_inside(path.resolve())


def _is_inside(real: Path) -> bool:
    return _folders is None or any(real.is_relative_to(folder) for folder in _folders)


def _locate(descriptor: int, path: Path) -> Path:
    """The real path of an open file; by its name where the system does not tell."""
    link = DESCRIPTORS / str(descriptor)
    return link.readlink() if DESCRIPTORS.is_dir() else path.resolve()
