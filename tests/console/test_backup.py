"""A backup of a store that is in use, and the store that is made of it."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cilf.console.backup import back_up, restore
from cilf.console.database import FILE
from cilf.console.service import Console
from cilf.console.store import FORMAT, Store
from cilf.errors import BadInput

from .conftest import COWS, HENS, act, list_clusters

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


def test_a_backup_of_another_format_is_refused(console: Console, tmp_path: Path) -> None:
    folder = console.store.folder
    console.store.close()
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(BadInput, match=f"format {FORMAT + 1}, and this cilf reads {FORMAT}"):
        back_up(folder, tmp_path / "a.tar")
