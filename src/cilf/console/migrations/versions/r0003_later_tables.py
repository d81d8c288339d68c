"""The archive of windows, the audit log, and the jobs that somebody wants to end.

Stores got these tables one after another under the same number, so each is made where it is
missing. The history of a split names its one cluster since then, and that of labels one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"

_events = sa.table(
    "events", sa.column("id", sa.Integer), sa.column("verb", sa.Text), sa.column("about", sa.JSON)
)


def upgrade() -> None:
    present = sa.inspect(op.get_bind()).get_table_names()
    if "archive" not in present:
        op.create_table("archive", _key("window"))
    if "cancellations" not in present:
        op.create_table("cancellations", _key("job"))
    if "audit" not in present:
        op.create_table(
            "audit",
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("time", sa.Text, nullable=False),
            sa.Column("person", sa.Text, nullable=False),
            sa.Column("address", sa.Text, nullable=False),
            sa.Column("window", sa.Integer, nullable=True),
            sa.Column("action", sa.Text, nullable=False),
            sa.Column("about", sa.JSON, nullable=False),
        )
    _change_history(op.get_bind())


def _change_history(connection: sa.Connection) -> None:
    wanted = sa.select(_events).where(_events.c.verb.in_(["split", "label", "undo"]))
    for found in connection.execute(wanted).all():
        own = sa.update(_events).where(_events.c.id == found.id)
        connection.execute(own.values(about=_change_about(found.verb, found.about)))


def _change_about(verb: str, about: Mapping[str, Any]) -> Mapping[str, Any]:
    if verb == "undo" and "what" in about:
        return {**about, "about": _change_about(about["what"], about["about"])}
    if verb == "split" and "clusters" in about:
        return {"cluster": about["clusters"][0]}
    if verb == "label" and "names" in about:
        return {"n": about["n"], "name": ", ".join(about["names"])}
    return about


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)
