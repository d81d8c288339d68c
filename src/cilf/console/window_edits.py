"""Renaming, archiving and deleting windows.

A deleted window keeps its number, so that no other window ever gets it. It is deleted first and its
files are removed then. A process that is killed in between leaves files, which the next worker
removes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from cilf.console.service import Conflict, Console, NotFound
from cilf.console.store import PENDING, QUEUED, RUNNING, Store, WindowRow
from cilf.console.uploads import UPLOADS
from cilf.errors import BadInput

DELETED_PROBLEM = "the window was deleted."
LONGEST_NAME = 200  # characters


def rename_window(console: Console, window: int, name: str, seen: str | None = None) -> WindowRow:
    """Rename a window, unless it is not called as the person has ``seen`` any more."""
    row = console.window(window)
    wanted = name.strip()[:LONGEST_NAME]
    if not wanted:
        raise BadInput("name is blank: give the window a name.")
    if not console.store.rename_window(window, row.name if seen is None else seen, wanted):
        raise Conflict(f"somebody else has renamed window {window}: check its name first.")
    console.store.log("rename window", window, {"old": row.name, "new": wanted})
    return console.window(window)


def archive_window(console: Console, window: int, archived: bool) -> WindowRow:
    """Hide a window from the list, or show it again."""
    row = console.window(window)
    console.store.archive_window(window, archived)
    console.store.log("archive window" if archived else "show window again", window)
    return row


def delete_window(console: Console, window: int, seen: str | None = None) -> None:
    """Delete a window with its history, its findings and its uploaded files.

    Versions of the model that learned from it stay.
    """
    row, store = console.window(window), console.store
    if seen is not None and row.name != seen:
        raise Conflict(f"somebody else has renamed window {window}: check its name first.")
    if any(one.window == window and one.decision == PENDING for one in store.updates()):
        raise BadInput(
            f"an update from window {window} waits for a decision: accept it or roll it back first."
        )
    store.end_queued_jobs(window, DELETED_PROBLEM)
    if store.jobs(window=window, statuses=[QUEUED, RUNNING]):
        raise Conflict(f"a job of window {window} is running: wait until it is done.")
    if not store.delete_window(window):
        raise NotFound(f"window {window} does not exist.")
    store.log("delete window", window, {"name": row.name})
    console.close(window)
    finish_deletions(store)


def finish_deletions(store: Store) -> None:
    """Remove the files and the history of windows that are deleted."""
    for row in store.deleted_windows():
        if row.source:
            shutil.rmtree(store.folder / "windows" / str(row.id), ignore_errors=True)
            _remove_upload(store, row)
            store.clear_window(row.id)


def _remove_upload(store: Store, row: WindowRow) -> None:
    """Remove the uploaded files of a window, unless another window shows them, too."""
    uploads, source = store.folder / UPLOADS, Path(row.source)
    if not source.is_relative_to(uploads) or source == uploads:
        return
    folder = uploads / source.relative_to(uploads).parts[0]
    if not any(Path(other.source).is_relative_to(folder) for other in store.windows()):
        shutil.rmtree(folder, ignore_errors=True)
