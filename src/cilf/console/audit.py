"""The audit log as a file: who did what, when, and from where."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cilf.console.store import AuditRow
from cilf.console.verbs import VERBS, describe_event
from cilf.data.spreadsheets import format_csv

COLUMNS = ("time", "person", "address", "window", "action", "description")


def describe_row(row: AuditRow) -> str:
    """What was done, in one line."""
    if row.action in VERBS or row.action == "undo":
        return describe_event(row.action, row.about)
    about = {name: value for name, value in row.about.items() if value not in ("", None, {}, [])}
    return ", ".join(f"{name} {value}" for name, value in about.items() if name != "person")


def write_audit(rows: Sequence[AuditRow], format: str, raw: bool = False) -> bytes:
    """The log as "csv" or "jsonl".

    In a CSV file, a cell that a spreadsheet would compute begins with an apostrophe unless it is
    ``raw``.
    """
    if format == "csv":
        return format_csv(COLUMNS, map(_list_cells, rows), raw=raw)
    plain = [
        dict(zip(COLUMNS, _list_cells(row), strict=True)) | {"about": dict(row.about)}
        for row in rows
    ]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in plain).encode()


def _list_cells(row: AuditRow) -> list[object]:
    window = "" if row.window is None else row.window
    return [row.time, row.person, row.address, window, row.action, describe_row(row)]
