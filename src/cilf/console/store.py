"""The store in SQL: windows, an append-only log of what people did, jobs, and updates of the model.

The database is a file of SQLite beside the windows, or a PostgreSQL database. An event is on disk
when ``append`` returns: SQLite has a write-ahead log with a full sync. A store of an older format
is upgraded when it is opened, and one of a newer format is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from cilf.console.database import (
    VERSION_TABLE,
    exclusive_transaction,
    is_sqlite,
    make_engine,
    read_format,
    write_format,
)
from cilf.console.origin import Origin, current_origin
from cilf.console.store_problems import NOTHING_SAVED, explain_problem
from cilf.core.notices import LOGGER
from cilf.errors import BadConfig

FORMAT = 4  # of the tables and of what is in them: the number of the last migration
CLASSES = 0  # the stream of events about classes; every other stream is a window's
DATA = "data"  # what a job is about: the path of its data
BELOW = "./"  # what a path begins with that is kept relative to the store
QUEUED, RUNNING, DONE, FAILED = "queued", "running", "done", "failed"
CANCELLED = "cancelled"  # status of a job
DELETED = "deleted"  # status of a window whose number is not used again
MOST_ATTEMPTS = 3
KILLED = "the worker was killed several times during this job: there may be too little memory."
PENDING, KEPT, UNDONE = "pending", "kept", "rolled back"

_tables = sa.MetaData()
_key = sa.Integer  # PostgreSQL makes it a serial

_windows = sa.Table(
    "windows",
    _tables,
    sa.Column("id", _key, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("budget", sa.Integer, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("time", sa.Text, nullable=False),
)
_events = sa.Table(
    "events",
    _tables,
    sa.Column("id", _key, primary_key=True),
    sa.Column("stream", sa.Integer, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("verb", sa.Text, nullable=False),
    sa.Column("about", sa.JSON, nullable=False),
    sa.Column("patch", sa.JSON, nullable=False),
    sa.Column("undoes", sa.Integer, nullable=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("time", sa.Text, nullable=False),
    sa.UniqueConstraint("stream", "seq"),
)
_jobs = sa.Table(
    "jobs",
    _tables,
    sa.Column("id", _key, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("window", sa.Integer, nullable=True),
    sa.Column("about", sa.JSON, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("problem", sa.Text, nullable=True),
    sa.Column("result", sa.JSON, nullable=True),
    sa.Column("time", sa.Text, nullable=False),
)
_updates = sa.Table(
    "updates",
    _tables,
    sa.Column("job", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("window", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("before", sa.Integer, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("outcome", sa.JSON, nullable=False),
)
_archive = sa.Table(
    "archive",
    _tables,
    sa.Column("window", sa.Integer, primary_key=True, autoincrement=False),
)
_cancellations = sa.Table(
    "cancellations",
    _tables,
    sa.Column("job", sa.Integer, primary_key=True, autoincrement=False),
)
_facts = sa.Table(
    "facts",
    _tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.JSON, nullable=False),
)
_audit = sa.Table(
    "audit",
    _tables,
    sa.Column("id", _key, primary_key=True),
    sa.Column("time", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("window", sa.Integer, nullable=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("about", sa.JSON, nullable=False),
)
_version = sa.Table(  # as Alembic makes it
    VERSION_TABLE,
    _tables,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


class SeqTaken(Exception):
    """Somebody else has written an event of this number."""


@dataclass(frozen=True)
class Event:
    """Something that a person did."""

    stream: int
    seq: int
    verb: str
    about: Mapping[str, Any]
    patch: Mapping[str, Any]
    person: str
    time: str
    undoes: int | None = None  # the seq of the event that it undoes


@dataclass(frozen=True)
class AuditRow:
    """A line of the audit log. The worker has no address."""

    time: str
    person: str
    address: str
    window: int | None
    action: str
    about: Mapping[str, Any]


@dataclass(frozen=True)
class WindowRow:
    """A window. The worker fills ``facts`` when it has detected."""

    id: int
    name: str
    source: str
    status: str
    budget: int
    facts: Mapping[str, Any]
    time: str


@dataclass(frozen=True)
class Job:
    """A job for the worker, of kind fit, detect, update, rollback, merge, forget or import."""

    id: int
    kind: str
    window: int | None
    about: Mapping[str, Any]
    status: str
    stage: str
    done: int
    total: int
    attempts: int
    problem: str | None
    result: Mapping[str, Any] | None
    time: str


@dataclass(frozen=True)
class Update:
    """A version of the model that a window led to, and the decision about it."""

    job: int
    window: int
    version: int
    before: int
    decision: str
    outcome: Mapping[str, Any]


class Store:
    """The tables, in SQLite or PostgreSQL."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.engine = make_engine(folder, url)
        try:
            self._prepare(url)
        except SQLAlchemyError as error:
            self.engine.dispose()
            raise BadConfig(self._explain(error)) from error
        except BaseException:
            self.engine.dispose()
            raise

    @property
    def is_sqlite(self) -> bool:
        return is_sqlite(self.engine)

    def _explain(self, error: SQLAlchemyError) -> str:
        """Why the database cannot be opened, in one line."""
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        if not self.is_sqlite:
            return f"the database cannot be used ({reason}): check its URL."
        problem = explain_problem(error).replace(f" {NOTHING_SAVED}", "")
        return f"the store {self.folder} cannot be opened ({reason}): {problem}"

    def _prepare(self, url: str | None) -> None:
        """Make the tables of a new store, upgrade those of an older one, refuse newer ones."""
        with self.engine.connect() as connection:
            if self._require_known(read_format(connection)) == FORMAT:
                return
        backup: Path | None = None
        with exclusive_transaction(self.engine) as connection:
            found = self._require_known(read_format(connection))  # others may have upgraded it
            if found is None:
                make_tables(connection)
                write_format(connection, FORMAT)
            elif found < FORMAT:
                backup = self._upgrade(connection, found, url)
        if backup is not None:
            LOGGER.warning(
                "the store %s was upgraded from format %d to %d. A backup from before is %s.",
                self.folder, found, FORMAT, backup,
            )  # fmt: skip

    def _require_known(self, found: int | None) -> int | None:
        if found is not None and found > FORMAT:
            raise BadConfig(
                f"the store {self.folder} has format {found}, and this cilf reads {FORMAT}: it was "
                "written by a newer cilf, so update cilf."
            )
        return found

    def _upgrade(self, connection: sa.Connection, found: int, url: str | None) -> Path:
        """Upgrade the store inside a transaction. Returns the backup from before."""
        from cilf.console.backup import back_up  # only here: both write stores
        from cilf.console.upgrade import upgrade_store

        try:
            return upgrade_store(
                connection, self.folder, found, lambda file: back_up(self.folder, file, url)
            )
        except Exception as error:  # whatever a migration meets in old rows
            reason = str(getattr(error, "orig", error)).strip().partition("\n")[0].rstrip(".")
            raise BadConfig(
                f"the store {self.folder} of format {found} cannot be upgraded ({reason}). It is "
                "as it was: make room or repair it, or use the cilf that wrote it."
            ) from error

    def close(self) -> None:
        """Close the database. The file of SQLite holds everything then, without its log."""
        with suppress(SQLAlchemyError):  # a reader may be in the way; the log is read next time
            if self.is_sqlite:
                with self.engine.connect() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        self.engine.dispose()

    # ------------------------------------------------------------- the log

    def append(self, event: Event, facts: Mapping[str, Any] | None = None) -> None:
        """Write an event to disk. Raises ``SeqTaken`` if its number is taken.

        ``facts`` are those of the window from the event on, if they change.
        """
        with self._write_events([(event, current_origin())]) as connection:
            if facts is not None:
                own = _windows.c.id == event.stream
                connection.execute(_windows.update().where(own).values(facts=dict(facts)))

    def append_all(self, events: Sequence[tuple[Event, Origin]]) -> None:
        """Write events and who made them to disk, all in one transaction.

        Raises ``SeqTaken`` if the number of any of them is taken. Then none of them is written.
        """
        with self._write_events(events):
            pass

    @contextmanager
    def _write_events(self, events: Sequence[tuple[Event, Origin]]) -> Iterator[sa.Connection]:
        """A transaction that begins with events and their lines of the audit log."""
        audit = [
            _make_audit_row(event.verb, event.stream or None, event.about, event.person, origin)
            for event, origin in events
        ]
        try:
            with self.engine.begin() as connection:
                connection.execute(_events.insert(), [vars(event) for event, _ in events])
                connection.execute(_audit.insert(), [vars(row) for row in audit])
                yield connection
        except IntegrityError as error:
            if any(self.last_seq(event.stream) >= event.seq for event, _ in events):
                raise SeqTaken from error
            raise  # something else is wrong with the database

    def events(self, stream: int, after: int = 0) -> list[Event]:
        """The events of a stream after a version, in order."""
        wanted = (_events.c.stream == stream) & (_events.c.seq > after)
        return [
            Event(**{k: v for k, v in row.items() if k != "id"})
            for row in self._rows(sa.select(_events).where(wanted).order_by(_events.c.seq))
        ]

    def last_seq(self, stream: int) -> int:
        found = self._rows(
            sa.select(sa.func.max(_events.c.seq).label("seq")).where(_events.c.stream == stream)
        )
        return found[0]["seq"] or 0

    def log(
        self, action: str, window: int | None = None, about: Mapping[str, Any] | None = None,
        person: str = "",
    ) -> None:  # fmt: skip
        """Write a line of the audit log. Events and jobs write their own."""
        row = _make_audit_row(action, window, about or {}, person, current_origin())
        with self.engine.begin() as connection:
            connection.execute(_audit.insert().values(**vars(row)))

    def audit(self) -> list[AuditRow]:
        """The audit log, in order."""
        rows = self._rows(sa.select(_audit).order_by(_audit.c.id))
        return [AuditRow(**{k: v for k, v in row.items() if k != "id"}) for row in rows]

    # ------------------------------------------------------------- windows

    def add_window(self, name: str, source: str, budget: int) -> int:
        kept = self._keep_path(source)
        return self._insert(
            _windows, name=name, source=kept, status=QUEUED, budget=budget, facts={}, time=now()
        )

    def _keep_path(self, source: str) -> str:
        """A path as the table holds it: below the store it begins with a dot, so that it holds
        wherever the store is moved."""
        path = Path(source)
        if not path.is_absolute() or not path.is_relative_to(self.folder.absolute()):
            return source
        return f"{BELOW}{path.relative_to(self.folder.absolute()).as_posix()}"

    def _find_path(self, kept: str) -> str:
        """The path that the table holds, as it is now."""
        if not kept.startswith(BELOW):
            return kept
        return str(self.folder.absolute() / kept.removeprefix(BELOW))

    def _make_window(self, row: Mapping[str, Any]) -> WindowRow:
        return WindowRow(**{**row, "source": self._find_path(row["source"])})

    def window(self, number: int) -> WindowRow | None:
        wanted = (_windows.c.id == number) & (_windows.c.status != DELETED)
        rows = self._rows(sa.select(_windows).where(wanted))
        return self._make_window(rows[0]) if rows else None

    def windows(self) -> list[WindowRow]:
        return self._select_windows(_windows.c.status != DELETED)

    def _select_windows(self, wanted: sa.ColumnElement[bool]) -> list[WindowRow]:
        query = sa.select(_windows).where(wanted).order_by(_windows.c.id)
        return [self._make_window(row) for row in self._rows(query)]

    def change_window(self, number: int, **values: Any) -> None:
        self._change(_windows, _windows.c.id == number, values)

    def rename_window(self, number: int, old: str, new: str) -> bool:
        """Rename a window. Returns whether it had the old name."""
        own = (_windows.c.id == number) & (_windows.c.name == old) & (_windows.c.status != DELETED)
        return bool(self._change(_windows, own, {"name": new}))

    def archive_window(self, number: int, archived: bool) -> None:
        """Put a window into the archive, or take it out."""
        own = _archive.c.window == number
        with self.engine.begin() as connection:
            connection.execute(_archive.delete().where(own))
            if archived:
                connection.execute(_archive.insert().values(window=number))

    def archived_windows(self) -> set[int]:
        return {row["window"] for row in self._rows(sa.select(_archive))}

    def delete_window(self, number: int) -> bool:
        """Delete a window but for its number. Returns whether it was there."""
        own = (_windows.c.id == number) & (_windows.c.status != DELETED)
        return bool(self._change(_windows, own, {"status": DELETED}))

    def deleted_windows(self) -> list[WindowRow]:
        return self._select_windows(_windows.c.status == DELETED)

    def clear_window(self, number: int) -> None:
        """Remove what is known about a window that is deleted."""
        empty = {"name": "", "source": "", "facts": {}}
        with self.engine.begin() as connection:
            connection.execute(_events.delete().where(_events.c.stream == number))
            connection.execute(_archive.delete().where(_archive.c.window == number))
            connection.execute(_windows.update().where(_windows.c.id == number).values(**empty))

    # ------------------------------------------------------------- jobs

    def add_job(self, kind: str, window: int | None = None, **about: Any) -> int:
        if DATA in about:
            about[DATA] = self._keep_path(about[DATA])
        self.log(f"queue {kind}", window, about, about.get("person", ""))
        return self._insert(
            _jobs, kind=kind, window=window, about=about, status=QUEUED, stage="", done=0, total=0,
            attempts=0, time=now(),
        )  # fmt: skip

    def job(self, number: int) -> Job | None:
        rows = self._rows(sa.select(_jobs).where(_jobs.c.id == number))
        return self._make_job(rows[0]) if rows else None

    def _make_job(self, row: Mapping[str, Any]) -> Job:
        about = row["about"]
        if DATA in about:
            about = {**about, DATA: self._find_path(about[DATA])}
        return Job(**{**row, "about": about})

    def jobs(self, window: int | None = None, statuses: Sequence[str] = ()) -> list[Job]:
        """Jobs in order, filtered by window and by status."""
        query = sa.select(_jobs).order_by(_jobs.c.id)
        if window is not None:
            query = query.where(_jobs.c.window == window)
        if statuses:
            query = query.where(_jobs.c.status.in_(statuses))
        return [self._make_job(row) for row in self._rows(query)]

    def claim_job(self) -> Job | None:
        """Mark the next job as running and return it."""
        for job in self.jobs(statuses=[QUEUED]):
            waiting = (_jobs.c.id == job.id) & (_jobs.c.status == QUEUED)
            attempt = {"status": RUNNING, "attempts": job.attempts + 1}
            if self._change(_jobs, waiting, attempt):
                return self.job(job.id)
        return None

    def end_queued_jobs(self, window: int, problem: str) -> None:
        """End the jobs of a window that no worker has begun."""
        waiting = (_jobs.c.window == window) & (_jobs.c.status == QUEUED)
        self._change(_jobs, waiting, {"status": FAILED, "problem": problem})

    def request_cancel(self, number: int) -> None:
        """Note that a job is not to be done."""
        if not self.is_cancelled(number):
            with suppress(IntegrityError), self.engine.begin() as connection:  # noted meanwhile
                connection.execute(_cancellations.insert().values(job=number))

    def is_cancelled(self, number: int) -> bool:
        """Whether somebody wants a job to end."""
        return bool(self._rows(sa.select(_cancellations).where(_cancellations.c.job == number)))

    def withdraw_job(self, number: int, problem: str) -> bool:
        """Cancel a job that no worker has begun. Returns whether that was so."""
        waiting = (_jobs.c.id == number) & (_jobs.c.status == QUEUED)
        return bool(self._change(_jobs, waiting, {"status": CANCELLED, "problem": problem}))

    def change_job(self, number: int, **values: Any) -> None:
        self._change(_jobs, _jobs.c.id == number, values)

    def requeue(self) -> None:
        """Queue the jobs of a killed worker again. After some attempts they fail."""
        left = _jobs.c.status == RUNNING
        killer = left & (_jobs.c.attempts >= MOST_ATTEMPTS)
        detecting = sa.select(_jobs.c.window).where(killer & (_jobs.c.kind == "detect"))
        failed = {"status": FAILED, "facts": {"problem": KILLED}}
        unfinished = _windows.c.id.in_(detecting) & (_windows.c.status != DONE)
        self._change(_windows, unfinished, failed)
        self._change(_jobs, killer, {"status": FAILED, "problem": KILLED})
        self._change(_jobs, left, {"status": QUEUED, "stage": "", "done": 0})

    # ------------------------------------------------------------- updates and facts

    def add_update(self, update: Update) -> None:
        """Add an update, unless there is one of the same job."""
        if self.update(update.job) is None:
            with self.engine.begin() as connection:
                connection.execute(_updates.insert().values(**vars(update)))

    def updates(self) -> list[Update]:
        return [Update(**row) for row in self._rows(sa.select(_updates).order_by(_updates.c.job))]

    def update(self, job: int) -> Update | None:
        return next((update for update in self.updates() if update.job == job), None)

    def decide(self, job: int, decision: str) -> bool:
        """Decide about an update. Returns whether it was undecided."""
        undecided = (_updates.c.job == job) & (_updates.c.decision == PENDING)
        decided = bool(self._change(_updates, undecided, {"decision": decision}))
        if decided:
            self.log(f"update {decision}", about={"job": job})
        return decided

    def reopen_update(self, job: int) -> None:
        """Make an update undecided again."""
        self._change(_updates, _updates.c.job == job, {"decision": PENDING})

    def fact(self, name: str) -> Any:
        """A value by name; None if there is none."""
        rows = self._rows(sa.select(_facts.c.value).where(_facts.c.name == name))
        return rows[0]["value"] if rows else None

    def put_fact(self, name: str, value: Any) -> None:
        if not self._change(_facts, _facts.c.name == name, {"value": value}):
            with self.engine.begin() as connection:
                connection.execute(_facts.insert().values(name=name, value=value))

    # ------------------------------------------------------------- SQL

    def _rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _insert(self, table: sa.Table, **values: Any) -> int:
        with self.engine.begin() as connection:
            made = connection.execute(table.insert().values(**values)).inserted_primary_key
        assert made is not None
        return int(made[0])

    def _change(self, table: sa.Table, where: sa.ColumnElement[bool], values: Any) -> int:
        with self.engine.begin() as connection:
            return int(connection.execute(table.update().where(where).values(**values)).rowcount)


def make_tables(connection: sa.Connection) -> sa.MetaData:
    """Make all tables, without rows. Returns them."""
    _tables.create_all(connection)
    return _tables


def _make_audit_row(
    action: str, window: int | None, about: Mapping[str, Any], person: str, origin: Origin
) -> AuditRow:
    return AuditRow(now(), person or origin.person, origin.address, window, action, dict(about))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
