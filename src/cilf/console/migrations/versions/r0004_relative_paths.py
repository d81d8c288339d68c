"""Paths that lie in the store are kept relative to it, so that a store can be moved.

A store may have been moved already. A path of uploads that leads nowhere is then looked for below
the uploads of the store.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"

BELOW, UPLOADS = "./", "uploads"
_windows = sa.table("windows", sa.column("id", sa.Integer), sa.column("source", sa.Text))
_jobs = sa.table("jobs", sa.column("id", sa.Integer), sa.column("about", sa.JSON))


def upgrade() -> None:
    connection, store = op.get_bind(), Path(op.get_context().opts["store"]).absolute()
    for number, source in connection.execute(sa.select(_windows)).all():
        own = sa.update(_windows).where(_windows.c.id == number)
        connection.execute(own.values(source=_shorten(source, store)))
    for number, about in connection.execute(sa.select(_jobs)).all():
        if isinstance(about.get("data"), str):
            own = sa.update(_jobs).where(_jobs.c.id == number)
            shortened = about | {"data": _shorten(about["data"], store)}
            connection.execute(own.values(about=shortened))


def _shorten(source: str, store: Path) -> str:
    path = PurePosixPath(source)
    if not path.is_absolute():
        return source
    if path.is_relative_to(store):
        return f"{BELOW}{path.relative_to(store)}"
    for place, part in enumerate(path.parts):
        below = PurePosixPath(*path.parts[place:])
        if part == UPLOADS and (store / below).exists() and not Path(path).exists():
            return f"{BELOW}{below}"
    return source
