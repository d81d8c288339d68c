"""Backups of a store: one file with everything in it, made while the console runs.

::

    manifest.json     the format, and how much of everything there is
    store/            the folder of the store; the database in it is a copy of one moment

The database is copied first, by SQLite itself, and the files after it. So each file that the copy
knows is there. A job that runs meanwhile is done again by the console on the restored store.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from cilf.console.log import SERVER, WORKER
from cilf.console.store import DONE, FILE, FORMAT
from cilf.core.files import PENDING, explain_write_errors, make_folder, put_folder
from cilf.errors import BadInput

MANIFEST, STORE = "manifest.json", "store"  # names in a backup
COUNTED = ("windows", "events", "jobs", "updates", "audit")  # tables
CONTENT = ("windows", "memory", "model", "uploads", "imports")  # folders of a store
LARGEST_MANIFEST = 1 << 20  # bytes

Counts = dict[str, int]


def back_up(store: Path, file: Path) -> Counts:
    """Write a backup of a store to a new file. Returns how much of everything it holds."""
    if not (store / FILE).is_file():
        raise BadInput(
            f"{store} holds no {FILE}: name the folder of a console. If it keeps its labels in "
            "PostgreSQL, back them up with pg_dump, and copy the folder after that."
        )
    if file.exists():
        raise BadInput(f"{file} exists already: name a new file.")
    make_folder(file.parent)
    pending = file.with_name(file.name + PENDING)
    try:
        with (
            explain_write_errors(file),
            tempfile.TemporaryDirectory(prefix=".cilf-backup-", dir=file.parent) as scratch,
        ):
            database = Path(scratch) / FILE
            counts = _copy_database(store / FILE, database)
            with tarfile.open(pending, "w", dereference=True) as archive:
                counts["files"] = _add_store(archive, store, database)
                _add_manifest(archive, counts)
            pending.rename(file)
    finally:
        pending.unlink(missing_ok=True)
    return counts


def restore(file: Path, store: Path) -> Counts:
    """Make a store from a backup. Returns how much of everything it holds."""
    if store.exists() and (not store.is_dir() or any(store.iterdir())):
        raise BadInput(f"{store} is not empty: name a new folder.")
    if not file.is_file():
        raise BadInput(f"there is no file {file}: give a backup of 'cilf backup'.")
    make_folder(store.parent)
    with (
        explain_write_errors(store),
        tempfile.TemporaryDirectory(prefix=".cilf-restore-", dir=store.parent) as scratch,
    ):
        try:
            with tarfile.open(file, "r:") as archive:
                manifest = _read_manifest(file, archive)
                n_files = _extract(archive, Path(scratch))
        except (tarfile.TarError, EOFError, KeyError, ValueError) as error:
            raise BadInput(f"{file} is no whole backup ({error}): give another one.") from error
        unpacked = Path(scratch) / STORE
        found = _count_rows(unpacked / FILE) | {"files": n_files}
        if found != manifest["counts"]:
            raise BadInput(f"{file} does not hold what it should: give another backup.")
        if store.exists():
            store.rmdir()
        put_folder(unpacked, store)
    return found


# ----------------------------------------------------------------- the database


def _copy_database(source: Path, target: Path) -> Counts:
    """Copy the database as it is at one moment, while others write to it."""
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file
    except sqlite3.Error as error:
        raise BadInput(
            f"{source} cannot be copied ({error}): see whether it is damaged."
        ) from error
    return _count_rows(target)


def _count_rows(database: Path) -> Counts:
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as found:
            (format,) = found.execute("PRAGMA user_version").fetchone()
            (state,) = found.execute("PRAGMA integrity_check").fetchone()
            queries = {t: f"SELECT count(*) FROM {t}" for t in COUNTED}  # nosec B608  # our names
            counts = {t: int(found.execute(sql).fetchone()[0]) for t, sql in queries.items()}
    except sqlite3.Error as error:
        raise BadInput(f"the database is damaged ({error}): give another backup.") from error
    if state != "ok":
        raise BadInput(f"the database is damaged ({state}): give another backup.")
    if format not in (0, FORMAT):  # 0: of a console that has not been started by this cilf yet
        raise BadInput(
            f"the database has format {format}, and this cilf reads {FORMAT}: use the cilf that "
            "wrote it."
        )
    return counts


def _find_windows(database: Path) -> list[int]:
    """The windows that are ready, and so have files."""
    with closing(sqlite3.connect(database)) as copy:
        rows = copy.execute("SELECT id FROM windows WHERE status = ?", [DONE]).fetchall()
    return [int(number) for (number,) in rows]


# ----------------------------------------------------------------- the files


def _add_store(archive: tarfile.TarFile, store: Path, database: Path) -> int:
    """Add the database and the files of a store. Returns the number of files."""
    archive.add(database, f"{STORE}/{FILE}")
    names = {FILE}
    for path in _list_files(store):
        name = path.relative_to(store).as_posix()
        try:
            with path.open("rb") as file:
                about = archive.gettarinfo(arcname=f"{STORE}/{name}", fileobj=file)
                archive.addfile(about, file)
        except FileNotFoundError:
            continue  # removed since
        names.add(name)
    folders = {PurePosixPath(name).parts[:2] for name in names}
    lost = [number for number in _find_windows(database) if ("windows", str(number)) not in folders]
    if lost:
        raise BadInput(f"the files of window {lost[0]} are gone, it may just have been deleted: "
                       "make the backup again.")  # fmt: skip
    return len(names)


def _list_files(store: Path) -> Iterator[Path]:
    for name in CONTENT:
        yield from sorted(path for path in (store / name).rglob("*") if path.is_file())
    yield from (store / name for name in (SERVER, WORKER) if (store / name).is_file())


def _add_manifest(archive: tarfile.TarFile, counts: Counts) -> None:
    about = {"format": FORMAT, "cilf": version("cilf"), "counts": counts}
    content = json.dumps(about, indent=1).encode()
    entry = tarfile.TarInfo(MANIFEST)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _read_manifest(file: Path, archive: tarfile.TarFile) -> dict[str, Any]:
    entry = archive.getmember(MANIFEST)
    content = archive.extractfile(entry)
    if content is None or entry.size > LARGEST_MANIFEST:
        raise BadInput(f"{file} is no backup of a console: give a file of 'cilf backup'.")
    manifest = json.loads(content.read())
    if not isinstance(manifest, dict) or "counts" not in manifest:
        raise BadInput(f"{file} is no backup of a console: give a file of 'cilf backup'.")
    return manifest


def _extract(archive: tarfile.TarFile, folder: Path) -> int:
    """Extract plain files below ``store/``. Returns their number."""
    n_files = 0
    for entry in archive:
        if entry.name == MANIFEST:
            continue
        parts = PurePosixPath(entry.name).parts
        if not entry.isfile() or parts[:1] != (STORE,) or ".." in parts or len(parts) < 2:
            raise BadInput(f"{entry.name[:80]!r} has no place in a backup: give another one.")
        content = archive.extractfile(entry)
        assert content is not None
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(stat.S_IMODE(entry.mode) & 0o644 | stat.S_IWUSR)
        n_files += 1
    return n_files
