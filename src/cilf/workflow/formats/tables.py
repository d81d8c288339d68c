"""CSV tables, and JSON lines."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cilf.data.spreadsheets import format_csv, parse_sheet
from cilf.errors import BadInput
from cilf.workflow.formats import json_values
from cilf.workflow.formats.contents import (
    CLUSTERS,
    EMBEDDINGS,
    LABELS,
    NOVELTY,
    PREDICTIONS,
    Entry,
    Export,
    Format,
    LabelRow,
)

COLUMNS = ("identity", "label", "predicted", "cluster", "novelty")
VECTORS = "embeddings.csv"
CARRIED = (LABELS, PREDICTIONS, CLUSTERS, NOVELTY, EMBEDDINGS)


def _write_csv(export: Export) -> dict[str, bytes]:
    cells = [[_cell(getattr(row, name)) for name in COLUMNS] for row in export.rows]
    files = {CSV.file: format_csv(COLUMNS, cells, raw=export.raw)}
    if any(row.embedding for row in export.rows):
        n = max(len(row.embedding) for row in export.rows)
        vectors = [(row.identity, *map(repr, row.embedding)) for row in export.rows]
        columns = ("identity", *(f"e{i + 1}" for i in range(n)))
        files[VECTORS] = format_csv(columns, vectors, raw=export.raw)
    return files


def _cell(value: object) -> object:
    return "" if value is None else value


def parse_csv(content: bytes) -> Iterator[Entry]:
    """The labels in a table, also in those of findings."""
    sheet = parse_sheet(content, Path("the table"))
    if "identity" not in sheet.columns or not {"label", "name"} & set(sheet.columns):
        raise BadInput("the table needs the columns 'identity' and 'label' (or 'name').")
    for row in sheet.rows:
        for label in _answers(row.cells):
            yield Entry(f"line {row.line}", label, row.cells["identity"])


def _answers(cells: Mapping[str, str]) -> list[str]:
    """The labels of a row. In findings.csv the label of a known instance is the model's."""
    if "name" not in cells:
        return [cells["label"]]
    return [cells["name"], cells.get("label", "") if cells.get("cluster") else ""]


def _write_jsonl(export: Export) -> dict[str, bytes]:
    lines = [json_values.encode(_to_object(row), indent=None) + b"\n" for row in export.rows]
    return {JSON_LINES.file: b"".join(lines)}


def _to_object(row: LabelRow) -> dict[str, Any]:
    plain = {name: getattr(row, name) for name in COLUMNS}
    return plain | ({"embedding": row.embedding} if row.embedding else {})


def _parse_jsonl(content: bytes) -> Iterator[Entry]:
    for number, line in enumerate(io.StringIO(json_values.decode(content)), start=1):
        if line.strip():
            where = f"line {number}"
            row = json_values.parse(line, where)
            identity = json_values.text_of(row, "identity", where)
            yield Entry(where, json_values.text_of(row, "label", where, default=""), identity)


CSV = Format(
    "CSV", "labels.csv", _write_csv, parse_csv, CARRIED, media_type="text/csv", by_address=True
)
JSON_LINES = Format(
    "JSON lines", "labels.jsonl", _write_jsonl, _parse_jsonl, CARRIED,
    media_type="application/jsonl", by_address=True,
)  # fmt: skip
