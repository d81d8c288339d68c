"""A cache on disk for slow results, by a hash of everything that they depend on.

The folder is ``CILF_CACHE`` if that is set, else ``cilf`` in the user's cache folder. It may be
removed at any time: missing results are computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cilf.errors import BadInput

VARIABLE = "CILF_CACHE"
PENDING = "pending-"
MAX_PENDING_SECONDS = 7 * 24 * 3600  # older pending folders are of killed processes


def cache_folder() -> Path:
    """The folder of the cache."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    user_cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(user_cache).expanduser() / "cilf"


def cached_folder(kind: str, key: Mapping[str, Any], make: Callable[[Path], None]) -> Path:
    """The folder cached under this key; the first time ``make`` fills an empty one.

    It appears whole or not at all, also when several processes make it at once.
    """
    folder = cache_folder() / kind / digest(key)
    try:
        if folder.is_dir():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        with tempfile.TemporaryDirectory(
            prefix=PENDING, dir=folder.parent, ignore_cleanup_errors=True
        ) as pending:
            inside = Path(pending) / "made"
            inside.mkdir()
            make(inside)
            _put(inside, folder)
    except OSError as error:
        raise BadInput(
            f"cannot write to the cache {cache_folder()} ({error.strerror or error}): set "
            f"{VARIABLE} to a folder with room."
        ) from error
    return folder


def _sweep(folder: Path) -> None:
    """Remove the pending folders of killed processes."""
    for left in folder.glob(f"{PENDING}*"):
        with suppress(OSError):  # another process may be removing it
            if time.time() - left.stat().st_mtime > MAX_PENDING_SECONDS:
                shutil.rmtree(left)


def _put(pending: Path, folder: Path) -> None:
    try:
        pending.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster, with the same content
            raise


def digest(key: Mapping[str, Any]) -> str:
    """A short hash of plain values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(key, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of names, sizes and times of change, which differs as soon as a file changes.

    The time of the last change of status counts too, since tools that copy or unpack set the
    other one back.
    """
    hashed = hashlib.blake2b(digest_size=16)
    for path in files:
        status = path.stat()
        hashed.update(os.fsencode(path.absolute()))  # a name need not be UTF-8
        about = status.st_size, status.st_mtime_ns, status.st_ctime_ns
        hashed.update(f"\0{about}\0".encode())
    return hashed.hexdigest()
