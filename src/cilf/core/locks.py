"""Locks of folders: one command at a time writes to a folder. A process that dies releases its."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from cilf.core.files import explain_write_errors, make_folder
from cilf.errors import BadInput

MOST_READ = 200  # characters of the line that says who holds a lock


@contextmanager
def hold_lock(file: Path, folder: Path, *, remove: bool = False) -> Iterator[None]:
    """Hold the lock in a file while a command writes to a folder. Refuse if another one does.

    The file says who holds the lock. It stays, unless ``remove`` is true.
    """
    make_folder(file.parent)
    with explain_write_errors(file.parent):
        opened = _open_and_lock(file, folder)
    with opened:
        try:
            yield
        finally:
            if remove:
                file.unlink(missing_ok=True)


def _open_and_lock(file: Path, folder: Path) -> TextIO:
    while True:
        opened = file.open("a+", encoding="utf-8", errors="replace")
        try:
            _lock(opened, folder)
        except BaseException:
            opened.close()
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                opened.truncate(0)
                opened.write(_describe_holder())
                opened.flush()
                return opened
        opened.close()  # its last holder has removed the file in between


def _lock(opened: TextIO, folder: Path) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        opened.seek(0)
        holder = opened.read(MOST_READ).strip() or "unknown"
        raise BadInput(
            f"another command is changing {folder} ({holder}): wait until it is done."
        ) from None


def _describe_holder() -> str:
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}\n"
