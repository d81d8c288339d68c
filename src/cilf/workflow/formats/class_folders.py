"""A folder for each class and each cluster: files are moved to label them, folders renamed.

``identities.csv`` says where each file was at first. A file that lies in another folder now, or
whose folder has another name, has the name of that folder as its label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from cilf.core.notices import warn_once
from cilf.data.spreadsheets import format_csv, read_sheet
from cilf.errors import BadInput
from cilf.workflow.formats.contents import (
    CLUSTERS,
    CONTENT,
    IMAGES,
    LABELS,
    PREDICTIONS,
    TEXTS,
    Entry,
    Export,
    Format,
    LabelRow,
)
from cilf.workflow.formats.tables import parse_csv

MANIFEST = "identities.csv"
COLUMNS = ("file", "folder", "identity", "label")
UNSAFE = '%/\\:*?"<>|'  # what some system does not take in the name of a folder
LONGEST = 200  # bytes of the name of a folder


def _write(export: Export) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    entries = []
    for number, row in enumerate(export.rows):
        name = PurePosixPath(row.image).name or f"{number:06d}.txt"
        if not row.image:
            files[_place(row, name)] = row.text.encode(errors="replace")
        entries.append((name, _name_folder(row), row.identity, row.label))
    return {MANIFEST: format_csv(COLUMNS, entries), **files}


def _place(row: LabelRow, name: str) -> str:
    return f"{_name_folder(row)}/{name}"


def _name_folder(row: LabelRow) -> str:
    """The folder of an instance.

    >>> _name_folder(LabelRow("7", "", "a/b", cluster=None, novelty=0.1))
    'a%2Fb'
    >>> _name_folder(LabelRow("8", "", "", cluster=1, novelty=0.9))
    'cluster-1'
    """
    name = row.label or row.predicted or f"cluster-{row.cluster}"
    quoted = "".join(_quote(character) if character in UNSAFE else character for character in name)
    if quoted.startswith("."):
        quoted = _quote(".") + quoted[1:]
    if quoted.endswith("."):
        quoted = quoted[:-1] + _quote(".")
    if len(quoted.encode()) > LONGEST:
        short = quoted.encode()[: LONGEST // 2].decode(errors="ignore")
        return f"{short} {hashlib.sha256(quoted.encode()).hexdigest()[:8]}"
    return quoted


def _quote(character: str) -> str:
    return f"%{ord(character):02X}"


def _read(folder: Path) -> Iterator[Entry]:
    sheet = read_sheet(folder / MANIFEST)
    missing = set(COLUMNS) - set(sheet.columns)
    if missing:
        raise BadInput(f"{sheet.path} lacks the column {min(missing)!r}: export again.")
    known = {row.cells["file"]: row.cells for row in sheet.rows}
    others = 0
    for path in sorted(folder.glob("*/**/*")):
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.name not in known:
            others += 1
            continue
        cells = known[path.name]
        place = path.relative_to(folder)
        label = cells["label"] if place.parts[0] == cells["folder"] else unquote(place.parts[0])
        if label:
            yield Entry(str(place), label, cells["identity"])
    if others:
        warn_once(f"{folder}: {others} files are not those of the export and are left out")


CLASS_FOLDERS = Format(
    "class folders", MANIFEST, _write, parse_csv, (LABELS, PREDICTIONS, CLUSTERS, CONTENT),
    forms=(IMAGES, TEXTS), media_type="text/csv", place=_place, read_folder=_read,
)  # fmt: skip
