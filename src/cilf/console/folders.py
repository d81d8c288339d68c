"""Folders of the server's machine, to choose data in. Only what may be read is listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cilf.console.service import Console
from cilf.data.pixels import is_image
from cilf.data.readers import suffix_of, suffixes
from cilf.errors import BadInput

MOST_ENTRIES = 500  # of a folder, listed
MOST_COUNTED = 1000  # files of a folder, looked at


def list_folder(console: Console, path: str = "") -> dict[str, Any]:
    """The folders and tables in a folder; without a path, in the folder to start with.

    Returns its ``path``, its ``parent`` (None if that may not be read), the ``folders`` and the
    ``files`` that can be data, and ``n_images``, the number of images directly in it.
    """
    if not path and console.roots is not None and len(console.roots) != 1:
        roots = [_describe(root, str(root)) for root in console.roots if root.is_dir()]
        return {"path": "", "parent": None, "folders": roots, "files": [], "n_images": 0}
    folder = console.require_readable("path", path) if path else _find_start(console)
    if not folder.is_dir():
        raise BadInput(f"path: {path!r} is a file: name a folder.")
    try:
        entries = sorted(_list(folder), key=lambda entry: entry.name.casefold())
    except OSError as error:
        raise BadInput(f"path: {str(folder)!r} cannot be read ({error.strerror}).") from error
    inside = [entry for entry in entries if console.is_readable(Path(entry.path))]
    parent = folder.parent
    can_go_up = parent != folder and console.is_readable(parent)
    folders = [entry for entry in inside if entry.is_dir()]
    files = [entry for entry in inside if suffix_of(Path(entry.name)) in suffixes()]
    return {
        "path": str(folder),
        "parent": str(parent) if can_go_up else None,
        "folders": [_describe(Path(one.path), one.name) for one in folders[:MOST_ENTRIES]],
        "files": [{"name": one.name, "path": one.path} for one in files[:MOST_ENTRIES]],
        "n_images": sum(is_image(Path(one.name)) for one in inside),
    }


def _find_start(console: Console) -> Path:
    """The folder above the data that was used last, else the root or the home folder."""
    sources = [row.source for row in reversed(console.store.windows())]
    sources += [job.about["data"] for job in console.store.jobs() if "data" in job.about]
    sources += [event["data"] for event in console.model()["events"] if "data" in event]
    for source in sources:
        folder = Path(source).absolute().parent
        in_store = folder.is_relative_to(console.store.folder)
        if Path(source).exists() and not in_store and console.is_readable(folder):
            return folder
    return Path.home() if console.roots is None else console.roots[0]


def _describe(folder: Path, name: str) -> dict[str, Any]:
    """A folder, with the number of images directly in it and of folders."""
    n_images = n_folders = 0
    try:
        for n_seen, entry in enumerate(_list(folder)):
            if n_seen >= MOST_COUNTED:
                break
            n_images += is_image(Path(entry.name))
            n_folders += entry.is_dir()
    except OSError:  # it is listed, and says why when it is opened
        pass
    return {"name": name, "path": str(folder), "n_images": n_images, "n_folders": n_folders}


def _list(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))
