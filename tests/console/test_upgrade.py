"""Stores that earlier versions of cilf made, and what an upgrade does to them."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from cilf.console import window_view
from cilf.console.backup import back_up, restore
from cilf.console.database import FILE, exclusive_transaction, make_engine, read_format
from cilf.console.database_copy import advance_sequences, copy_rows, digest_tables, open_file
from cilf.console.service import Console
from cilf.console.store import FORMAT, PENDING, QUEUED, Store, _tables
from cilf.console.upgrade import BACKUPS, migrate
from cilf.console.verbs import describe_event
from cilf.errors import BadConfig

from .conftest import act

STORES = Path(__file__).parents[1] / "fixtures" / "0.1"
FORMATS = {"format-1": 1, "format-2": 2, "format-2-absolute": 2}
HISTORY = [
    "named cluster 1 “cows”", "split cluster 1", "rejected cluster 2", "undid reject",
    "moved 1 to a new cluster", "moved 1 to the known instances", "labelled 2 as “lion”",
    "merged cluster 2, 3", "assigned cluster 2 to “cat”", "undid into", "skipped cluster 2",
]  # fmt: skip


@pytest.fixture(params=FORMATS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of an earlier version."""
    return put_old(request.param, tmp_path)


def put_old(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORES / name, tmp_path / name))


def digest(folder: Path) -> Any:
    with open_file(folder / FILE).connect() as connection:
        return read_format(connection), digest_tables(connection)


def check_contents(store: Store) -> None:
    """Everything that people did in the old store is there, and people can go on."""
    console = Console(store, store.folder / "model")
    assert [describe_event(e.verb, e.about) for e in store.events(1)] == HISTORY
    clusters = window_view.list_clusters(console, 1)
    found = {c["cluster"]: (c["name"], c["status"], c["size"]) for c in clusters}
    assert found[1] == ("cattle", "open", 1)
    assert found[2] == (None, "skipped", 6)
    assert found[5] == ("lion", "open", 2)
    assert console.open(1).gallery.thumb(0).startswith(b"\x89PNG")
    assert store.window(1) == console.window(1)
    assert console.window(1).facts["n_clusters"] == 2
    assert console.window(1).source == str(store.folder.absolute() / "uploads" / "a1")
    fit, done, waiting = store.jobs()
    assert (fit.kind, fit.about["learner"]) == ("fit", "cilf")
    assert (done.kind, done.about["labels"]) == ("update", "labels-11.json")
    assert waiting.status == QUEUED
    labels = store.folder / "windows" / "1" / waiting.about["labels"]
    assert json.loads(labels.read_text()) == {"cow-16": "cattle"}
    (update,) = store.updates()
    assert (update.job, update.decision, update.outcome["n_labels"]) == (done.id, PENDING, 1)
    act(console, 1, "name", clusters=[2], name="hen")
    console.undo(1, seq=1)
    assert store.archived_windows() == set()
    assert [row.action for row in store.audit()][-2:] == ["name", "undo"]


def test_a_store_of_an_earlier_version_opens(old: Path, caplog: Any) -> None:
    format = FORMATS[old.name]
    store = Store(old)
    (backup,) = (old / BACKUPS).iterdir()
    assert backup.name.startswith(f"{old.name}-format-{format}-20")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "cilf"]
    assert line == (
        f"the store {old} was upgraded from format {format} to {FORMAT}. A backup from before is "
        f"{backup}."
    )
    check_contents(store)
    store.close()
    caplog.clear()
    Store(old).close()
    assert [record for record in caplog.records if record.name == "cilf"] == []
    assert list((old / BACKUPS).iterdir()) == [backup]


def test_the_backup_before_an_upgrade_is_whole(old: Path, tmp_path: Path) -> None:
    before = digest(old)
    Store(old).close()
    (backup,) = (old / BACKUPS).iterdir()
    subprocess.run(["tar", "-xf", backup], cwd=tmp_path, check=True)
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)
    assert digest(tmp_path / "store") == before
    restore(backup, tmp_path / "again")
    again = Store(tmp_path / "again")
    check_contents(again)
    again.close()


def test_an_upgrade_that_fails_changes_nothing(old: Path) -> None:
    with closing(sqlite3.connect(old / FILE)) as connection:
        connection.execute("UPDATE jobs SET about = '[7]' WHERE id = 2")
        connection.commit()
    before = digest(old)
    with pytest.raises(BadConfig, match=r"cannot be upgraded \(.*\)\. It is as it was: ") as caught:
        Store(old)
    assert "\n" not in str(caught.value)
    assert digest(old) == before
    assert list((old / BACKUPS).iterdir()) == []


def test_without_a_backup_nothing_is_upgraded(old: Path) -> None:
    before = digest(old)
    (old / BACKUPS).write_bytes(b"in the way")
    with pytest.raises(BadConfig, match="cannot be upgraded"):
        Store(old)
    assert digest(old) == before


def test_two_processes_upgrade_once(tmp_path: Path) -> None:
    old = put_old("format-1", tmp_path)
    code = (
        f"from pathlib import Path; from cilf.console.store import Store; Store(Path({str(old)!r}))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    lines = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("was upgraded" in line for line in lines) == 1
    assert len(list((old / BACKUPS).iterdir())) == 1
    store = Store(old)
    check_contents(store)
    store.close()


def test_an_upgrade_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    old = put_old("format-1", tmp_path)
    before = digest(old)
    code = (
        "import os, sys; from pathlib import Path; from cilf.console import store, upgrade\n"
        "upgrade.write_format = lambda *_: os._exit(9)  # after the last migration\n"
        "store.Store(Path(sys.argv[1]))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(old)], check=False).returncode == 9
    assert digest(old) == before
    (backup,) = (old / BACKUPS).iterdir()
    backup.rename(backup.with_name("kept.tar"))  # the next one may be of the same second
    store = Store(old)
    check_contents(store)
    store.close()
    assert len(list((old / BACKUPS).iterdir())) == 2


def test_paths_in_the_store_become_relative(tmp_path: Path) -> None:
    old = put_old("format-2-absolute", tmp_path)
    outside = tmp_path / "photos"
    with closing(sqlite3.connect(old / FILE)) as connection:
        add = "INSERT INTO windows SELECT ?, name, ?, 'queued', budget, '{}', time FROM windows"
        for number, source in ((2, old / "uploads" / "b2"), (3, outside)):
            connection.execute(f"{add} WHERE id = 1", [number, str(source)])
        connection.commit()
    Store(old).close()
    moved = Path(shutil.move(old, tmp_path / "elsewhere"))
    store = Store(moved)
    sources = [Path(row.source) for row in store.windows()]
    assert sources == [moved / "uploads" / "a1", moved / "uploads" / "b2", outside]
    store.close()


def test_the_data_of_a_fit_move_with_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    number = store.add_job("fit", data=str(tmp_path / "uploads" / "a0"))
    named = store.add_job("fit", data="digits")
    store.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        ((about,),) = connection.execute("SELECT about FROM jobs WHERE id = ?", [number]).fetchall()
    assert json.loads(about) == {"data": "./uploads/a0"}
    store = Store(tmp_path)
    found, other = store.job(number), store.job(named)
    assert found is not None
    assert other is not None
    assert (found.about["data"], other.about["data"]) == (str(tmp_path / "uploads/a0"), "digits")
    store.close()


# ----------------------------------------------------------------- migrations


def make_by_migrations(engine: sa.Engine, folder: Path) -> list[Any]:
    """Run all migrations on an empty database. Returns how its tables differ from the store's."""
    with exclusive_transaction(engine) as connection:
        assert migrate(connection, folder, None) == FORMAT
        return list(compare_metadata(MigrationContext.configure(connection), _tables))


def test_migrations_make_the_tables_of_a_new_store(tmp_path: Path, new_database: str) -> None:
    for url in (None, new_database):
        engine = make_engine(tmp_path, url)
        assert make_by_migrations(engine, tmp_path) == []
        engine.dispose()
        store = Store(tmp_path, url)  # which finds nothing to do
        assert store.windows() == []
        store.close()
    assert not (tmp_path / BACKUPS).exists()


@pytest.mark.parametrize("name", FORMATS)
def test_an_upgrade_on_postgresql_is_that_on_sqlite(
    name: str, tmp_path: Path, new_database: str, caplog: Any
) -> None:
    caplog.set_level(logging.ERROR)
    old, twin = put_old(name, tmp_path), put_old(name, tmp_path / "twin")
    put_rows(twin, new_database)
    (twin / FILE).unlink()
    store, upgraded = Store(old), Store(twin, new_database)
    with store.engine.connect() as one, upgraded.engine.connect() as other:
        assert digest_tables(one) == digest_tables(other)
    (backup,) = (twin / BACKUPS).iterdir()
    check_contents(upgraded)
    store.close()
    upgraded.close()
    restore(backup, tmp_path / "again")
    again = Store(tmp_path / "again")
    check_contents(again)
    again.close()


def put_rows(folder: Path, url: str) -> None:
    """Copy the tables of an old file of SQLite to PostgreSQL, as the old cilf made them there."""
    engine, tables = make_engine(folder, url), sa.MetaData()
    with open_file(folder / FILE).connect() as source, engine.begin() as target:
        tables.reflect(source)
        for table in tables.sorted_tables:
            for column in table.columns:
                column.type = column.type.as_generic()
        tables.create_all(target)
        copy_rows(source, target, tables)
        advance_sequences(target, tables)
    engine.dispose()


def test_an_upgrade_that_fails_on_postgresql_changes_nothing(
    tmp_path: Path, new_database: str
) -> None:
    old = put_old("format-1", tmp_path)
    with closing(sqlite3.connect(old / FILE)) as connection:
        connection.execute("UPDATE jobs SET about = '[7]' WHERE id = 2")
        connection.commit()
    put_rows(old, new_database)
    engine = make_engine(old, new_database)
    with engine.connect() as connection:
        before = digest_tables(connection)
    with pytest.raises(BadConfig, match="cannot be upgraded"):
        Store(old, new_database)
    with engine.connect() as connection:
        assert digest_tables(connection) == before
    engine.dispose()
    assert list((old / BACKUPS).iterdir()) == []


def test_an_old_store_can_be_backed_up_as_it_is(old: Path, tmp_path: Path) -> None:
    before = digest(old)
    back_up(old, tmp_path / "a.tar")
    assert digest(old) == before
    restore(tmp_path / "a.tar", tmp_path / "again")
    again = Store(tmp_path / "again")
    check_contents(again)
    again.close()
