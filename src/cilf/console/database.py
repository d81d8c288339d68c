"""The database of a store: a file of SQLite or a PostgreSQL database, and the format of its tables.

The format is the number of the last migration (``cilf.console.migrations``). Alembic's table holds
it. So do the head of a file of SQLite and the row ``format`` of the facts, where versions of cilf
without migrations look for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event as sa_event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from cilf.errors import BadConfig

FILE = "console.sqlite"
FORMAT_ROW = "format"  # the fact that holds the format
VERSION_TABLE = "alembic_version"
FIRST_TABLES = {"windows", "events", "jobs", "facts"}  # that every store has had
UPGRADE_LOCK = 0x63696C66  # of PostgreSQL: one process at a time makes or changes tables
BUSY, BUSY_UPGRADING = 20_000, 600_000  # ms that SQLite waits for another process

_facts = sa.table("facts", sa.column("name", sa.Text), sa.column("value", sa.JSON))
_version = sa.table(VERSION_TABLE, sa.column("version_num", sa.Text))


def make_engine(folder: Path, url: str | None = None) -> sa.Engine:
    """The database of a store: the file of SQLite in it, or the PostgreSQL database of the URL."""
    if url is None:
        engine = sa.create_engine(f"sqlite:///{folder / FILE}")
        sa_event.listen(engine, "connect", _set_up_sqlite)
        return engine
    try:
        parsed = sa.make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        return sa.create_engine(parsed, pool_pre_ping=True)
    except (SQLAlchemyError, ImportError) as error:
        raise BadConfig(
            f"database {url.partition('@')[2] or url!r} cannot be used ({error}): give "
            "postgresql://USER@HOST/NAME, and pip install 'cilf[postgres]'."
        ) from error


def is_sqlite(bind: sa.Engine | sa.Connection) -> bool:
    return bind.dialect.name == "sqlite"


def _set_up_sqlite(connection: Any, _: Any) -> None:
    with closing(connection.cursor()) as cursor:
        for pragma in (f"busy_timeout={BUSY}", "journal_mode=WAL", "synchronous=FULL"):
            cursor.execute(f"PRAGMA {pragma}")


@contextmanager
def exclusive_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that may make and change tables. Others wait, and nobody else writes meanwhile.

    All of it is undone if the block raises.
    """
    if not is_sqlite(engine):
        with engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
            for name in sa.inspect(connection).get_table_names():
                quoted = connection.dialect.identifier_preparer.quote(name)
                connection.exec_driver_sql(f"LOCK TABLE {quoted} IN EXCLUSIVE MODE")
            yield connection
        return
    own = sa.create_engine(engine.url, poolclass=NullPool)
    sa_event.listen(own, "connect", _set_up_sqlite)
    sa_event.listen(own, "connect", _begin_by_hand)
    sa_event.listen(own, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
    with own.begin() as connection:
        yield connection


def _begin_by_hand(connection: Any, _: Any) -> None:
    """Let no statement begin or end a transaction of SQLite by itself, as those of tables would."""
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={BUSY_UPGRADING}")


def read_format(connection: sa.Connection) -> int | None:
    """The format of the tables; None if there are none."""
    if is_sqlite(connection):
        version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
        if version:
            return version
    tables = sa.inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        return _parse_version(connection.execute(sa.select(_version)).scalar())
    if not tables:
        return None
    if FIRST_TABLES - set(tables):
        raise BadConfig(
            f"the database has tables of another program ({tables[0]!r}): give a database of its "
            "own to the console."
        )
    row = sa.select(_facts.c.value).where(_facts.c.name == FORMAT_ROW)
    return int(connection.execute(row).scalar() or 1)


def _parse_version(found: str | None) -> int:
    if not re.fullmatch(r"\d{4}", found or ""):
        raise BadConfig(
            f"the database has the version {found!r} of another program: give a database of its "
            "own to the console."
        )
    return int(found or "")


def write_format(connection: sa.Connection, format: int) -> None:
    """Write the format to all places that hold it."""
    connection.execute(sa.delete(_version))
    connection.execute(sa.insert(_version).values(version_num=name_revision(format)))
    connection.execute(sa.delete(_facts).where(_facts.c.name == FORMAT_ROW))
    connection.execute(sa.insert(_facts).values(name=FORMAT_ROW, value=format))
    if is_sqlite(connection):
        connection.exec_driver_sql(f"PRAGMA user_version = {format}")


def name_revision(format: int) -> str:
    """Alembic's name of a format.

    >>> name_revision(4)
    '0004'
    """
    return f"{format:04}"
