"""Copies of a store's database, also between SQLite and PostgreSQL, and digests to compare them.

The digest of a table is the SHA-256 of its rows as JSON, in the order of their keys. It is the same
in both kinds of databases.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypedDict

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from cilf.console.database import is_sqlite, read_format
from cilf.errors import BadInput

PIECE = 1000  # rows that are in memory at once


class TableDigest(TypedDict):
    """How many rows a table has, and the SHA-256 of all of them."""

    rows: int
    sha256: str


Digests = dict[str, TableDigest]


def open_file(path: Path) -> sa.Engine:
    """A file of SQLite that nobody else uses."""
    return sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)


@contextmanager
def explain_copy_errors(what: object, remedy: str) -> Iterator[None]:
    """Turn errors of a database inside the block into one line."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise BadInput(f"{what} cannot be copied ({reason}): {remedy}") from error


# ----------------------------------------------------------------- copies


def copy_file(source: Path, target: Path) -> None:
    """Copy a file of SQLite as it is at one moment, while others write to it."""
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
    merge_journal(target)


def merge_journal(path: Path) -> None:
    """Let a file of SQLite hold everything, without files beside it."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=DELETE")


def copy_server(source: sa.Engine, target: Path) -> None:
    """Copy a PostgreSQL database to a new file of SQLite, in one transaction."""
    one_moment = source.execution_options(isolation_level="REPEATABLE READ")
    with one_moment.connect() as original, open_file(target).begin() as copy:
        tables = _reflect(original)
        for table in tables.sorted_tables:
            for column in table.columns:
                column.server_default = None  # a sequence of PostgreSQL
                column.type = column.type.as_generic()
        tables.create_all(copy)
        copy_rows(original, copy, tables)
        copy.exec_driver_sql(f"PRAGMA user_version = {read_format(original) or 0}")


def copy_rows(source: sa.Connection, target: sa.Connection, tables: sa.MetaData) -> None:
    """Copy all rows of tables into tables of the same names, which are empty."""
    for table in tables.sorted_tables:
        found = source.execution_options(yield_per=PIECE).execute(sa.select(table)).mappings()
        for rows in found.partitions(PIECE):
            target.execute(table.insert(), [dict(row) for row in rows])


def advance_sequences(target: sa.Connection, tables: sa.MetaData) -> None:
    """Let PostgreSQL number new rows after those that were copied."""
    for table in tables.sorted_tables:
        column = table.autoincrement_column
        last = None if column is None else target.execute(sa.select(sa.func.max(column))).scalar()
        if column is not None and last is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            target.execute(sa.select(sa.func.setval(sequence, last)))


# ----------------------------------------------------------------- digests


def digest_tables(connection: sa.Connection) -> Digests:
    """The digest of every table of a database."""
    return {table.name: _digest(connection, table) for table in _reflect(connection).sorted_tables}


def _digest(connection: sa.Connection, table: sa.Table) -> TableDigest:
    order = [
        column.collate("C") if isinstance(column.type, sa.String) else column
        for column in table.primary_key
    ]
    if is_sqlite(connection):
        order = list(table.primary_key)  # SQLite compares bytes anyway
    total, n_rows = hashlib.sha256(), 0
    found = connection.execution_options(yield_per=PIECE).execute(sa.select(table).order_by(*order))
    for row in found.mappings():
        total.update(_format_row(row))
        n_rows += 1
    return {"rows": n_rows, "sha256": total.hexdigest()}


def _format_row(row: Mapping[Any, Any]) -> bytes:
    plain = {str(name): value for name, value in row.items()}
    return json.dumps(plain, sort_keys=True).encode() + b"\n"


def _reflect(connection: sa.Connection) -> sa.MetaData:
    """The tables as they are in a database, of whatever format."""
    tables = sa.MetaData()
    tables.reflect(connection)
    return tables
