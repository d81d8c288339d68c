"""Upgrades of a store's database: a backup first, then all migrations in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from cilf.console.database import name_revision, write_format
from cilf.core.files import make_folder
from cilf.errors import BadInput

BACKUPS = "backups"  # folder of the store
MIGRATIONS = Path(__file__).with_name("migrations")

WriteBackup = Callable[[Path], object]


def upgrade_store(
    connection: sa.Connection, store: Path, found: int, write_backup: WriteBackup
) -> Path:
    """Upgrade a store to the newest format, after writing a backup. Returns the backup's path.

    The connection is in a transaction that keeps others from writing. If a migration fails, the
    backup is removed, and the caller undoes the transaction.
    """
    file = name_backup(store, found)
    make_folder(file.parent)
    write_backup(file)
    try:
        migrate(connection, store, found)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file


def name_backup(store: Path, found: int) -> Path:
    """The file of the backup before an upgrade: its name has the format and the time."""
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{store.absolute().name}-format-{found}-{time}.tar"
    file = store / BACKUPS / name
    if file.exists():
        raise BadInput(f"{file} exists already: wait a second, then start again.")
    return file


def migrate(connection: sa.Connection, store: Path, found: int | None) -> int:
    """Run all migrations after a format; None is a database without tables.

    Returns the format that the database has then.
    """
    scripts = ScriptDirectory(str(MIGRATIONS))
    context = MigrationContext.configure(connection, opts={"store": str(store)})
    former = "base" if found is None else name_revision(found)
    if found is not None:
        context.stamp(scripts, former)
    pending = reversed(list(scripts.iterate_revisions("head", former)))
    format = found or 0
    with Operations.context(context):
        for script in pending:
            script.module.upgrade()
            context.stamp(scripts, script.revision)
            format = int(script.revision)
    write_format(connection, format)
    return format
