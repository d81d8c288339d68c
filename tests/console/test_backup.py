"""A backup of a store that is in use, and the store that is made of it."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cilf.console import backup, database_copy
from cilf.console.backup import back_up, restore
from cilf.console.database import FILE, make_engine, read_format
from cilf.console.service import Console
from cilf.console.store import FORMAT, Store, Update, _tables
from cilf.errors import BadInput

from .conftest import COWS, HENS, act, list_clusters, put_window

Entries = dict[str, tarfile.TarInfo]


def make_console(folder: Path) -> Console:
    store = Store(folder)
    return Console(store, folder / "model")


def test_a_restored_store_is_the_same(console: Console, tmp_path: Path) -> None:
    act(console, 1, "name", clusters=[COWS], name="Kühe", person="ann")
    uploads = console.store.folder / "uploads" / "abc"
    uploads.mkdir(parents=True)
    (uploads / "a.png").write_bytes(b"picture")
    file = tmp_path / "elsewhere" / "monday.tar"
    counts = back_up(console.store.folder, file)
    act(console, 1, "name", clusters=[HENS], name="after it")
    assert restore(file, tmp_path / "new") == counts
    assert (counts["windows"], counts["events"]) == (1, 2)  # the name, and its class
    again = make_console(tmp_path / "new")
    assert list_clusters(again)[COWS][0] == "Kühe"
    assert list_clusters(again)[HENS][0] is None
    assert again.open(1).gallery.thumb(3) == console.open(1).gallery.thumb(3)
    assert (tmp_path / "new" / "uploads" / "abc" / "a.png").read_bytes() == b"picture"
    act(again, 1, "name", clusters=[HENS], name="hen")
    again.store.close()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["monday.tar"]


def test_a_backup_while_people_label_is_of_one_moment(console: Console, tmp_path: Path) -> None:
    stopped = threading.Event()

    def label() -> None:
        for row in range(50):
            if not stopped.is_set():
                act(console, 1, "label", rows=[row], name=f"class {row % 3}")

    person = threading.Thread(target=label)
    person.start()
    for number in range(3):
        back_up(console.store.folder, tmp_path / f"{number}.tar")
    stopped.set()
    person.join()
    for number in range(3):
        restore(tmp_path / f"{number}.tar", tmp_path / f"store {number}")
        again = make_console(tmp_path / f"store {number}")
        n_events = len(again.store.events(1))
        assert again.store.events(1) == console.store.events(1)[:n_events]
        assert again.open(1).state.version == n_events
        again.store.close()


def test_what_cannot_be_backed_up(console: Console, tmp_path: Path) -> None:
    store = console.store.folder
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadInput, match=r"holds no console\.sqlite.*--database"):
        back_up(empty, tmp_path / "a.tar")
    (tmp_path / "there.tar").touch()
    with pytest.raises(BadInput, match="exists already: name a new file"):
        back_up(store, tmp_path / "there.tar")
    console.store.add_window("second", "nowhere", budget=1)
    console.store.change_window(2, status="done")
    with pytest.raises(BadInput, match="files of window 2 are gone"):
        back_up(store, tmp_path / "a.tar")
    assert not (tmp_path / "a.tar").exists()


def test_a_folder_in_use_is_left_alone(console: Console, tmp_path: Path) -> None:
    back_up(console.store.folder, tmp_path / "a.tar")
    with pytest.raises(BadInput, match="is not empty: name a new folder"):
        restore(tmp_path / "a.tar", console.store.folder)
    with pytest.raises(BadInput, match="there is no file"):
        restore(tmp_path / "b.tar", tmp_path / "new")
    (tmp_path / "new").mkdir()
    restore(tmp_path / "a.tar", tmp_path / "new")


def repack(file: Path, change: Callable[[tarfile.TarInfo], tarfile.TarInfo | None]) -> Path:
    """The backup with its entries changed, or without those for which there is None."""
    changed = file.with_name("changed.tar")
    with tarfile.open(file) as source, tarfile.open(changed, "w") as target:
        for entry in source:
            content = source.extractfile(entry)
            assert content is not None
            changed_entry = change(entry)
            if changed_entry is not None:
                target.addfile(changed_entry, io.BytesIO(content.read()))
    return changed


def rename_ids(entry: tarfile.TarInfo, name: str, type: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    if entry.name.startswith("store/windows/1/"):
        entry.name, entry.type, entry.linkname = name, type, "/etc/passwd"
    return entry


CHANGES: dict[str, Callable[[tarfile.TarInfo], tarfile.TarInfo | None]] = {
    "a path upwards": lambda entry: rename_ids(entry, "store/../../outside"),
    "a path from the root": lambda entry: rename_ids(entry, "/tmp/outside"),
    "a link": lambda entry: rename_ids(entry, "store/windows/1/x", tarfile.SYMTYPE),
    "a device": lambda entry: rename_ids(entry, "store/windows/1/x", tarfile.CHRTYPE),
    "elsewhere": lambda entry: rename_ids(entry, "outside"),
    "a file is missing": lambda e: None if e.name.startswith("store/windows/1/") else e,
    "no checksums": lambda entry: None if entry.name == "SHA256SUMS" else entry,
    "no manifest": lambda entry: None if entry.name == "manifest.json" else entry,
    "no database": lambda entry: None if entry.name == f"store/{FILE}" else entry,
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_backup_that_was_changed_makes_no_store(
    console: Console, tmp_path: Path, case: str
) -> None:
    file = tmp_path / "a.tar"
    back_up(console.store.folder, file)
    with pytest.raises(BadInput):
        restore(repack(file, CHANGES[case]), tmp_path / "new" / "store")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("end", [100, 10_000])
def test_a_backup_that_was_cut_off_makes_no_store(
    console: Console, tmp_path: Path, end: int
) -> None:
    back_up(console.store.folder, tmp_path / "a.tar")
    (tmp_path / "b.tar").write_bytes((tmp_path / "a.tar").read_bytes()[:end])
    with pytest.raises(BadInput):
        restore(tmp_path / "b.tar", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["store/windows/1/view.npz", "SHA256SUMS", f"store/{FILE}"])
def test_a_changed_bit_is_found(console: Console, tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.tar"
    back_up(console.store.folder, file)
    with tarfile.open(file) as archive:
        place = archive.getmember(name).offset_data + 20
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(BadInput, match=rf"a\.tar is damaged \({name}.*\): give another backup"):
        restore(file, tmp_path / "new" / "store")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_manifest_has_the_digest_of_every_table(console: Console, tmp_path: Path) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="ann")
    back_up(console.store.folder, tmp_path / "a.tar")
    manifest = read_manifest(tmp_path / "a.tar")
    assert (manifest["backup"], manifest["format"]) == (2, FORMAT)
    assert set(manifest["tables"]) == {table.name for table in _tables.sorted_tables}
    expected = hashlib.sha256()
    for event in [*console.store.events(0), *console.store.events(1)]:
        row = {"id": event.stream + 1, **vars(event)}
        expected.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    assert manifest["tables"]["events"] == {"rows": 2, "sha256": expected.hexdigest()}


def read_manifest(file: Path) -> dict[str, Any]:
    with tarfile.open(file) as archive:
        content = archive.extractfile("manifest.json")
        assert content is not None
        manifest: dict[str, Any] = json.loads(content.read())
        return manifest


def rewrite_manifest(file: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The backup with another manifest."""
    manifest = read_manifest(file)
    change(manifest)
    changed = repack(file, lambda entry: None if entry.name == "manifest.json" else entry)
    with tarfile.open(changed, "a") as archive:
        content = json.dumps(manifest).encode()
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return changed


def test_rows_that_are_not_those_of_the_manifest(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    back_up(console.store.folder, file)
    changed = rewrite_manifest(file, lambda m: m["tables"]["windows"].update(sha256="0" * 64))
    with pytest.raises(BadInput, match="does not hold what it should"):
        restore(changed, tmp_path / "new")


def test_a_backup_of_the_first_format_has_no_checksums(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    counts = back_up(console.store.folder, file)

    def age(manifest: dict[str, Any]) -> None:
        for name in ("backup", "tables", "checksums", "time"):
            del manifest[name]

    file = rewrite_manifest(file, age)
    file = file.rename(tmp_path / "b.tar")
    file = repack(file, lambda entry: None if entry.name == "SHA256SUMS" else entry)
    assert restore(file, tmp_path / "new") == counts
    newer = rewrite_manifest(tmp_path / "a.tar", lambda manifest: manifest.update(backup=3))
    with pytest.raises(BadInput, match="backup of format 3, and this cilf reads up to 2: update"):
        restore(newer, tmp_path / "newer")


# ----------------------------------------------------------------- PostgreSQL


def read_everything(store: Store) -> list[Any]:
    """What people and the worker have written."""
    return [
        store.windows(), store.events(0), store.events(1), store.jobs(), store.updates(),
        store.audit(), store.fact("model"), store.archived_windows(),
    ]  # fmt: skip


def fill(console: Console) -> None:
    """Write something into every table."""
    store = console.store
    act(console, 1, "name", clusters=[COWS], name="Kühe 🐄", person="ann")
    act(console, 1, "assign", clusters=[HENS], assignee="bob")
    store.put_fact("Ärger", {"b": 0.1, "a": [1e-300, None, "\u2028"]})
    store.put_fact("zebra", 1)
    job = store.add_job("update", 1, labels="labels-1.json", keys={})
    store.add_update(Update(job, 1, 2, 1, "pending", {"loss": None}))
    store.change_job(job, status="done", result={"accuracy": 1 / 3})
    store.request_cancel(store.add_job("detect", 1))
    store.archive_window(1, True)


def test_a_store_moves_to_postgresql_and_back(
    console: Console, tmp_path: Path, new_database: str
) -> None:
    fill(console)
    there, back = tmp_path / "there.tar", tmp_path / "back.tar"
    counts = back_up(console.store.folder, there)
    assert restore(there, tmp_path / "moved", new_database) == counts
    assert not (tmp_path / "moved" / FILE).exists()
    store = Store(tmp_path / "moved", new_database)
    assert read_everything(store) == read_everything(console.store)
    assert back_up(tmp_path / "moved", back, new_database) == counts
    assert read_manifest(back)["tables"] == read_manifest(there)["tables"]
    again = Console(store, tmp_path / "moved" / "model")
    act(again, 1, "name", clusters=[HENS], name="hen")  # rows get numbers that are free
    store.add_job("detect", 1)
    restore(back, tmp_path / "home")
    home = Store(tmp_path / "home")
    assert read_everything(home) == read_everything(console.store)
    home.close()
    store.close()


def test_a_backup_from_postgresql_is_of_one_moment(
    tmp_path: Path, new_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store", new_database)
    (tmp_path / "store").mkdir()
    console = Console(store, tmp_path / "model")
    put_window(console)
    copied = database_copy.copy_rows

    def write_meanwhile(source: Any, target: Any, tables: Any) -> None:
        source.exec_driver_sql("SELECT count(*) FROM facts")  # the moment
        store.put_fact("late", 1)
        act(console, 1, "name", clusters=[COWS], name="late")
        copied(source, target, tables)

    monkeypatch.setattr(database_copy, "copy_rows", write_meanwhile)
    counts = back_up(tmp_path / "store", tmp_path / "a.tar", new_database)
    assert (counts["windows"], counts["events"], counts["audit"]) == (1, 0, 0)
    store.close()


def test_a_database_in_use_is_left_alone(
    console: Console, tmp_path: Path, new_database: str
) -> None:
    back_up(console.store.folder, tmp_path / "a.tar")
    store = Store(tmp_path, new_database)
    with pytest.raises(BadInput, match="the database holds tables already: give the URL of an em"):
        restore(tmp_path / "a.tar", tmp_path / "new", new_database)
    assert not (tmp_path / "new").exists()
    store.close()
    with pytest.raises(BadInput, match=r"the database cannot be copied .*: check its URL"):
        back_up(tmp_path, tmp_path / "b.tar", "postgresql://nobody@127.0.0.1:1/nothing")
    assert not (tmp_path / "b.tar").exists()


def test_a_restore_that_fails_leaves_the_database_empty(
    console: Console, tmp_path: Path, new_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(console.store.folder, tmp_path / "a.tar")
    monkeypatch.setattr(backup, "copy_rows", lambda *_: None)  # as if rows were lost
    with pytest.raises(BadInput, match="does not hold what it should"):
        restore(tmp_path / "a.tar", tmp_path / "new", new_database)
    assert not (tmp_path / "new").exists()
    engine = make_engine(tmp_path, new_database)
    with engine.connect() as connection:
        assert read_format(connection) is None
    engine.dispose()


def test_a_backup_of_a_newer_format_is_refused(console: Console, tmp_path: Path) -> None:
    folder = console.store.folder
    console.store.close()
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(BadInput, match=f"format {FORMAT + 1}, and this cilf reads {FORMAT}"):
        back_up(folder, tmp_path / "a.tar")
