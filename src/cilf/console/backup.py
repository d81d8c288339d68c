"""Backups of a store: one file with everything in it, made while the console runs.

::

    manifest.json     the formats, and the counts and checksums of tables and files
    SHA256SUMS        the checksum of every file, as sha256sum reads it
    store/            the folder of the store; the database in it is a copy of one moment

The database is copied first, and the files after it. So each file that the copy knows is there. A
job that runs meanwhile is done again by the console on the restored store. The copy is a file of
SQLite, whatever the store keeps its labels in: a backup of either kind of database is restored to
either.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO, Any

import sqlalchemy as sa

from cilf.console.database import FILE, exclusive_transaction, make_engine, read_format
from cilf.console.database_copy import (
    Digests,
    advance_sequences,
    copy_file,
    copy_rows,
    copy_server,
    digest_tables,
    explain_copy_errors,
    merge_journal,
    open_file,
)
from cilf.console.log import SERVER, WORKER
from cilf.console.store import DONE, FORMAT, make_tables
from cilf.core.files import PENDING, explain_write_errors, make_folder, put_folder
from cilf.core.notices import LOGGER
from cilf.errors import BadInput

BACKUP_FORMAT = 2  # of the file; format 1 had counts and no checksums
MANIFEST, CHECKSUMS, STORE = "manifest.json", "SHA256SUMS", "store"  # names in a backup
COUNTED = ("windows", "events", "jobs", "updates", "audit")  # tables
CONTENT = ("windows", "memory", "model", "uploads", "imports")  # folders of a store
LARGEST_MANIFEST, LARGEST_CHECKSUMS = 1 << 20, 1 << 28  # bytes

Counts = dict[str, int]
Checksums = dict[str, str]  # name in the backup -> SHA-256


def back_up(store: Path, file: Path, database: str | None = None) -> Counts:
    """Write a backup of a store to a new file. Returns how much of everything it holds.

    Args:
        store: the folder of the store.
        file: the file to write.
        database: the URL of the store's PostgreSQL database, if it has one.
    """
    if database is None and not (store / FILE).is_file():
        raise BadInput(
            f"{store} holds no {FILE}: name the folder of a console. If it keeps its labels in "
            "PostgreSQL, give its URL as --database."
        )
    if not store.is_dir():
        raise BadInput(f"there is no folder {store}: name the folder of a console.")
    if file.exists():
        raise BadInput(f"{file} exists already: name a new file.")
    make_folder(file.parent)
    pending = file.with_name(file.name + PENDING)
    try:
        with (
            explain_write_errors(file),
            tempfile.TemporaryDirectory(prefix=".cilf-backup-", dir=file.parent) as scratch,
        ):
            copy = Path(scratch) / FILE
            _copy_database(store, database, copy)
            format, tables = _examine(copy)
            with tarfile.open(pending, "w", dereference=True) as archive:
                checksums = _add_store(archive, store, copy)
                listing = _format_checksums(checksums)
                _add_bytes(archive, CHECKSUMS, listing)
                counts = _count(tables, len(checksums))
                manifest = {
                    "backup": BACKUP_FORMAT,
                    "format": format,
                    "cilf": version("cilf"),
                    "time": datetime.now(UTC).isoformat(timespec="seconds"),
                    "counts": counts,
                    "tables": tables,
                    "checksums": hashlib.sha256(listing).hexdigest(),
                }
                _add_bytes(archive, MANIFEST, json.dumps(manifest, indent=1).encode())
            pending.rename(file)
    finally:
        pending.unlink(missing_ok=True)
    return counts


def restore(file: Path, store: Path, database: str | None = None) -> Counts:
    """Make a store from a backup. Returns how much of everything it holds.

    Args:
        file: the backup. One of an older format is upgraded in the store, and stays as it is.
        store: the folder to make.
        database: the URL of an empty PostgreSQL database. The default is a file of SQLite.
    """
    if store.exists() and (not store.is_dir() or any(store.iterdir())):
        raise BadInput(f"{store} is not empty: name a new folder.")
    if not file.is_file():
        raise BadInput(f"there is no file {file}: give a backup of 'cilf backup'.")
    make_folder(store.parent)
    with (
        explain_write_errors(store),
        tempfile.TemporaryDirectory(prefix=".cilf-restore-", dir=store.parent) as scratch,
    ):
        unpacked = Path(scratch) / STORE
        counts, format = _unpack(file, Path(scratch))
        if format < FORMAT:
            _upgrade_copy(unpacked, format)
            LOGGER.warning("the backup of format %d was upgraded to format %d.", format, FORMAT)
        if database is None:
            _put_store(unpacked, store)
        else:
            _put_store_and_database(unpacked, store, database)
    return counts


def _put_store(unpacked: Path, store: Path) -> None:
    if store.exists():
        store.rmdir()
    put_folder(unpacked, store)


# ----------------------------------------------------------------- the database


def _copy_database(store: Path, database: str | None, target: Path) -> None:
    if database is None:
        with explain_copy_errors(store / FILE, "see whether it is damaged."):
            copy_file(store / FILE, target)
        return
    engine = make_engine(store, database)
    try:
        with explain_copy_errors("the database", "check its URL."):
            copy_server(engine, target)
    finally:
        engine.dispose()


def _examine(database: Path) -> tuple[int, Digests]:
    """The format of a copy, and the digests of its tables. A damaged copy is refused."""
    remedy = "give another backup."
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as found:
            (state,) = found.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise BadInput(f"the database is damaged ({error}): {remedy}") from error
    if state != "ok":
        raise BadInput(f"the database is damaged ({state}): {remedy}")
    with explain_copy_errors("the database", remedy), open_file(database).connect() as connection:
        format = read_format(connection)
        if format is None:
            raise BadInput(f"the database has no tables: {remedy}")
        if format > FORMAT:
            raise BadInput(
                f"the database has format {format}, and this cilf reads {FORMAT}: use the cilf "
                "that wrote it."
            )
        return format, digest_tables(connection)


def _count(tables: Digests, n_files: int) -> Counts:
    counts = {name: tables[name]["rows"] for name in COUNTED if name in tables}
    return counts | {"files": n_files}


def _find_windows(database: Path) -> list[int]:
    """The windows that are ready, and so have files."""
    with (
        explain_copy_errors("the database", "see whether it is one of a console."),
        closing(sqlite3.connect(database)) as copy,
    ):
        rows = copy.execute("SELECT id FROM windows WHERE status = ?", [DONE]).fetchall()
    return [int(number) for (number,) in rows]


def _upgrade_copy(store: Path, format: int) -> None:
    """Upgrade the database of an unpacked store."""
    from cilf.console.upgrade import migrate  # only here: Alembic takes a moment to import

    engine = make_engine(store)
    try:
        with exclusive_transaction(engine) as connection:
            migrate(connection, store, format)
    except Exception as error:  # whatever a migration meets in old rows
        raise BadInput(
            f"the backup of format {format} cannot be upgraded ({error}): use the cilf that wrote "
            "it."
        ) from error
    finally:
        engine.dispose()
    merge_journal(store / FILE)


def _put_store_and_database(unpacked: Path, store: Path, url: str) -> None:
    """Copy the unpacked database to PostgreSQL, and put the other files in place."""
    engine = make_engine(store, url)
    try:
        with (
            explain_copy_errors("the database", "check its URL."),
            open_file(unpacked / FILE).connect() as copy,
            exclusive_transaction(engine) as target,
        ):
            if sa.inspect(target).get_table_names():
                raise BadInput("the database holds tables already: give the URL of an empty one.")
            tables = make_tables(target)
            copy_rows(copy, target, tables)
            advance_sequences(target, tables)
            if digest_tables(target) != digest_tables(copy):
                raise BadInput("the database does not hold what it should: give another one.")
            (unpacked / FILE).unlink()
            _put_store(unpacked, store)
    finally:
        engine.dispose()


# ----------------------------------------------------------------- writing files


class _HashedFile:
    """A file that is read once, with the checksum of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._digest.update(content)
        return content

    @property
    def checksum(self) -> str:
        return self._digest.hexdigest()


def _add_store(archive: tarfile.TarFile, store: Path, database: Path) -> Checksums:
    """Add the database and the files of a store. Returns their checksums."""
    checksums = {f"{STORE}/{FILE}": _add_file(archive, database, f"{STORE}/{FILE}")}
    for path in _list_files(store):
        name = f"{STORE}/{path.relative_to(store).as_posix()}"
        try:
            checksums[name] = _add_file(archive, path, name)
        except FileNotFoundError:
            continue  # removed since
    folders = {PurePosixPath(name).parts[1:3] for name in checksums}
    lost = [number for number in _find_windows(database) if ("windows", str(number)) not in folders]
    if lost:
        raise BadInput(f"the files of window {lost[0]} are gone, it may just have been deleted: "
                       "make the backup again.")  # fmt: skip
    return checksums


def _add_file(archive: tarfile.TarFile, path: Path, name: str) -> str:
    with path.open("rb") as file:
        hashed = _HashedFile(file)
        archive.addfile(archive.gettarinfo(arcname=name, fileobj=file), hashed)
    return hashed.checksum


def _list_files(store: Path) -> Iterator[Path]:
    for name in CONTENT:
        yield from sorted(path for path in (store / name).rglob("*") if path.is_file())
    yield from (store / name for name in (SERVER, WORKER) if (store / name).is_file())


def _format_checksums(checksums: Checksums) -> bytes:
    lines = [f"{checksum}  {name}\n" for name, checksum in sorted(checksums.items())]
    return "".join(lines).encode(errors="surrogateescape")


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


# ----------------------------------------------------------------- reading files


def _unpack(file: Path, folder: Path) -> tuple[Counts, int]:
    """Extract a backup and compare it with its manifest. Returns its counts and its format."""
    try:
        with tarfile.open(file, "r:") as archive:
            manifest = _read_manifest(file, archive)
            expected = _read_checksums(file, archive, manifest)
            found = _extract(archive, folder)
    except (tarfile.TarError, EOFError, KeyError, ValueError) as error:
        raise BadInput(f"{file} is no whole backup ({error}): give another one.") from error
    if expected is not None:
        _compare_checksums(file, expected, found)
    format, tables = _examine(folder / STORE / FILE)
    counts = _count(tables, len(found))
    if counts != manifest["counts"] or manifest.get("tables", tables) != tables:
        raise BadInput(f"{file} does not hold what it should: give another backup.")
    return counts, format


def _read_manifest(file: Path, archive: tarfile.TarFile) -> dict[str, Any]:
    foreign = BadInput(f"{file} is no backup of a console: give a file of 'cilf backup'.")
    manifest = json.loads(_read_entry(archive, MANIFEST, LARGEST_MANIFEST, foreign))
    if not isinstance(manifest, dict) or "counts" not in manifest:
        raise foreign
    written = manifest.get("backup", 1)
    if not isinstance(written, int) or written > BACKUP_FORMAT:
        raise BadInput(
            f"{file} is a backup of format {written!r}, and this cilf reads up to {BACKUP_FORMAT}: "
            "update cilf."
        )
    return manifest


def _read_checksums(
    file: Path, archive: tarfile.TarFile, manifest: dict[str, Any]
) -> Checksums | None:
    """The checksums of the files; None if the backup is of the format without them."""
    if manifest.get("backup", 1) < BACKUP_FORMAT:
        return None
    damaged = BadInput(f"{file} is damaged ({CHECKSUMS}): give another backup.")
    listing = _read_entry(archive, CHECKSUMS, LARGEST_CHECKSUMS, damaged)
    if hashlib.sha256(listing).hexdigest() != manifest["checksums"]:
        raise damaged
    lines = listing.decode(errors="surrogateescape").splitlines()
    return {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}


def _read_entry(archive: tarfile.TarFile, name: str, largest: int, problem: BadInput) -> bytes:
    entry = archive.getmember(name)
    content = archive.extractfile(entry)
    if content is None or entry.size > largest:
        raise problem
    return content.read()


def _compare_checksums(file: Path, expected: Checksums, found: Checksums) -> None:
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise BadInput(
                f"{file} is damaged ({name} is not what was written): give another backup."
            )


def _extract(archive: tarfile.TarFile, folder: Path) -> Checksums:
    """Extract plain files below ``store/``. Returns their checksums."""
    checksums: Checksums = {}
    for entry in archive:
        if entry.name in (MANIFEST, CHECKSUMS):
            continue
        parts = PurePosixPath(entry.name).parts
        if not entry.isfile() or parts[:1] != (STORE,) or ".." in parts or len(parts) < 2:
            raise BadInput(f"{entry.name[:80]!r} has no place in a backup: give another one.")
        content = archive.extractfile(entry)
        assert content is not None
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        hashed = _HashedFile(content)
        with path.open("xb") as file:
            shutil.copyfileobj(hashed, file)
        path.chmod(stat.S_IMODE(entry.mode) & 0o644 | stat.S_IWUSR)
        checksums[entry.name] = hashed.checksum
    return checksums
