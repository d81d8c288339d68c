"""SQLite and PostgreSQL keep the same."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from cilf.console import window_view
from cilf.console.database import FILE, make_engine
from cilf.console.service import Conflict, Console
from cilf.console.state import Patch
from cilf.console.store import CLASSES, FORMAT, Event, SeqTaken, Store, _tables, now
from cilf.errors import BadConfig

from .conftest import (
    act,
    put_model,
    put_window,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of either kind."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    store = Store(tmp_path, url)
    put_model(store)
    yield store
    if url is not None:
        _tables.drop_all(store.engine)
    store.close()


def test_a_story_on_either_database(kept: Store) -> None:
    console = Console(kept, kept.folder / "model")
    window = put_window(console)
    act(console, window, "name", clusters=[1], name="Kühe 🐄", person="ann")
    act(console, window, "merge", clusters=[1, 2])
    console.undo(window)
    console.rename("Kühe 🐄", "cows")
    with pytest.raises(Conflict):
        act(console, window, "name", clusters=[1], name="calf", version=0)
    again = Console(kept, kept.folder / "model")
    assert window_view.list_clusters(again, window) == window_view.list_clusters(console, window)
    assert [cluster["name"] for cluster in window_view.list_clusters(again, window)] == [
        None,
        "cows",
    ]


def test_the_log_takes_each_number_once(kept: Store) -> None:
    event = Event(CLASSES, 1, "rename", {}, {"names": {}}, "ann", now())
    kept.append(event)
    with pytest.raises(SeqTaken):
        kept.append(event)
    assert kept.events(CLASSES) == [event]
    assert kept.last_seq(CLASSES) == 1
    assert kept.last_seq(7) == 0


def test_two_people_at_once_on_either_database(kept: Store) -> None:
    """Each on a server of their own, in threads: every change is either there or was refused."""
    first = Console(kept, kept.folder / "model")
    window = put_window(first)
    done: list[tuple[int, str]] = []

    def label(person: str, seed: int) -> None:
        console, rng = Console(kept, kept.folder / "model"), random.Random(seed)
        for i in range(15):
            row, name = rng.randrange(50), f"{person}-{i}"
            try:
                act(console, window, "label", rows=[row], name=name, person=person)
            except Conflict:
                continue
            done.append((row, name))

    people = [threading.Thread(target=label, args=(p, s)) for s, p in enumerate(("ann", "bob"))]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join()
    assert kept.last_seq(window) == len(done)
    names = [event.about["name"] for event in kept.events(window)]
    assert sorted(names) == sorted(name for _, name in done)
    state = Console(kept, kept.folder / "model").open(window).state
    assert state.version == len(done)


def test_jobs_are_claimed_once_and_again_after_a_kill(kept: Store) -> None:
    window = kept.add_window("first", "nowhere", budget=1)
    number = kept.add_job("detect", window)
    for attempt in range(3):
        job = kept.claim_job()
        assert job is not None
        assert (job.id, job.status, job.attempts) == (number, "running", attempt + 1)
        assert kept.claim_job() is None
        kept.requeue()
    ended = kept.job(number)
    assert ended is not None
    assert ended.status == "failed"
    assert "killed several times" in (ended.problem or "")
    row = kept.window(window)
    assert row is not None
    assert (row.status, row.facts["problem"]) == ("failed", ended.problem)


def test_patches_are_kept_as_they_are(kept: Store) -> None:
    console = Console(kept, kept.folder / "model")
    window = put_window(console)
    act(console, window, "move", rows=[0, 30, 42], to="new")
    (event,) = kept.events(window)
    assert Patch.from_json(event.patch).to_json() == event.patch


@pytest.mark.parametrize("url", ["nonsense", "mysql://x@y/z", "postgresql://u@127.0.0.1:1/x"])
def test_databases_that_cannot_be_used(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadConfig, match="cannot be used"):
        Store(tmp_path, url)


NEWER = rf"has format {FORMAT + 1}, and this cilf reads {FORMAT}: .*a newer cilf, so update cilf"


def test_a_file_of_a_newer_format_is_refused_and_not_touched(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(BadConfig, match=NEWER):
        Store(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_database_of_a_newer_format_is_refused(new_database: str, tmp_path: Path) -> None:
    store = Store(tmp_path, new_database)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{FORMAT + 1:04}'")
    with pytest.raises(BadConfig, match=NEWER):
        Store(tmp_path, new_database)
    store.close()


def test_a_database_of_another_program_is_refused(new_database: str, tmp_path: Path) -> None:
    engine = make_engine(tmp_path, new_database)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num text)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    with pytest.raises(BadConfig, match="version 'ae1027a6acf' of another program: give a data"):
        Store(tmp_path, new_database)
    engine.dispose()


def test_tables_of_another_program_are_left_alone(new_database: str, tmp_path: Path) -> None:
    engine = make_engine(tmp_path, new_database)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id integer)")
    with pytest.raises(BadConfig, match=r"has tables of another program .'orders'.: give a datab"):
        Store(tmp_path, new_database)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["orders"]
    engine.dispose()
    assert not (tmp_path / "backups").exists()


def test_a_file_knows_its_format(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        versions = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        assert versions == [(f"{FORMAT:04}",)]


def test_only_a_taken_number_is_a_conflict(kept: Store) -> None:
    with pytest.raises(IntegrityError):
        kept.append(Event(CLASSES, 1, "rename", {}, {}, None, now()))  # type: ignore[arg-type]
    assert kept.events(CLASSES) == []
    assert kept.audit() == []


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    reader = Store(tmp_path)  # as another process that was killed, and so never closed it
    reader.events(CLASSES)
    event = Event(CLASSES, 1, "rename", {}, {"names": {}}, "ann", now())
    store.append(event)
    store.close()
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / FILE, alone / FILE)
    copy = Store(alone)
    assert copy.events(CLASSES) == [event]
    copy.close()
    reader.close()


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 1000)
    with pytest.raises(BadConfig, match=r"file is not a database.*Restore a backup"):
        Store(tmp_path)
