"""Groups became clusters, and lessons became updates: tables, keys and verbs take the new words."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"

Plain = Mapping[str, Any]

_windows = sa.table("windows", sa.column("id", sa.Integer), sa.column("facts", sa.JSON))
_events = sa.table(
    "events",
    sa.column("id", sa.Integer),
    sa.column("verb", sa.Text),
    sa.column("about", sa.JSON),
    sa.column("patch", sa.JSON),
)
_jobs = sa.table(
    "jobs",
    sa.column("id", sa.Integer),
    sa.column("kind", sa.Text),
    sa.column("window", sa.Integer),
    sa.column("about", sa.JSON),
    sa.column("result", sa.JSON),
)
FIT_DEFAULTS = {"seed": 0, "backbone": "", "label": "", "column": "", "skip_bad": False}


def upgrade() -> None:
    op.rename_table("lessons", "updates")
    _change_rows(_windows, lambda row: {"facts": _rename_keys(row["facts"], kinds="n_clusters")})
    _change_rows(_events, _change_event)
    _change_rows(_jobs, _change_job)


def _change_rows(table: sa.TableClause, change: Callable[[Plain], Plain]) -> None:
    connection = op.get_bind()
    for found in connection.execute(sa.select(table)).all():
        values = change(found._asdict())
        connection.execute(sa.update(table).where(table.c.id == found.id).values(**values))


def _change_event(row: Plain) -> Plain:
    return {
        "verb": "update" if row["verb"] == "taught" else row["verb"],
        "about": _change_about(row["verb"], row["about"]),
        "patch": _rename_keys(row["patch"], groups="clusters", taught="keys"),
    }


def _change_about(verb: str, about: Plain) -> Plain:
    """The fields of the history."""
    if verb == "undo" and "what" in about:
        return {**about, "about": _change_about(about["what"], about["about"])}
    if verb == "move" and "to" in about:
        return {**about, "to": {None: "new", 0: "known"}.get(about["to"], about["to"])}
    return _rename_keys(about, groups="clusters")


def _change_job(row: Plain) -> Plain:
    about = _rename_keys(row["about"], answers="labels", lesson="update")
    if row["kind"] == "fit":
        about = {**FIT_DEFAULTS, **about}
    if row["kind"] == "learn":
        about = {**about, "labels": _copy_labels(row["window"], about["labels"])}
    result = None if row["result"] is None else _rename_keys(row["result"], kinds="n_clusters")
    kind = "update" if row["kind"] == "learn" else row["kind"]
    return {"kind": kind, "about": about, "result": sa.null() if result is None else result}


def _copy_labels(window: int, name: str) -> str:
    """Copy the file of what an update learns to its present name."""
    present = name.replace("answers-", "labels-")
    folder = Path(op.get_context().opts["store"]) / "windows" / str(window)
    if (folder / name).is_file():
        shutil.copyfile(folder / name, folder / present)
    return present


def _rename_keys(plain: Plain, **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in plain.items()}
