"""Labels in files: in the tables of a findings folder, or in a table of one's own.

- In ``findings.csv``, the column ``name`` holds the label of an instance. A novel instance, whose
  column ``label`` is empty at first, may get its label there instead.
- In ``clusters.csv``, the column ``name`` holds the label of all members of a cluster. The name of
  an instance takes precedence over the name of its cluster.
- In any other table, the columns ``identity`` and ``label`` count.
- A file or folder in another format of ``FORMATS`` is one that an export wrote, or another program
  after it.
- The name ``-`` leaves out an instance or a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from cilf.core.documents import digest
from cilf.core.files import describe_missing
from cilf.core.names import check_name, normalize_name
from cilf.core.notices import warn_once
from cilf.data.spreadsheets import Row, Sheet, read_sheet
from cilf.errors import BadInput
from cilf.workflow.findings import CLUSTERS, HEAD, ROWS, Assignments, Findings
from cilf.workflow.formats import FORMATS, Entry, find_format
from cilf.workflow.formats.tables import CSV

LEFT_OUT = "-"
MOST_LISTED = 3

Names = dict[int, str]  # row of the findings, or number of a cluster from 0 -> name


def read_labels(
    source: str | Path, findings: str | Path | None = None, *, format: str | None = None
) -> tuple[Findings, dict[str, str]]:
    """Read the labels in a findings folder, or in a file or folder about one.

    Args:
        source: a findings folder, a table, or labels in a format of ``FORMATS``. The two tables of
            a findings folder count together.
        findings: the findings folder that the labels are about, if they do not lie in it.
        format: the name of the format; found by the files if None.

    Returns:
        The findings, and the label of each labelled instance by its identity, as
        :func:`cilf.workflow.update` takes them.
    """
    path = Path(source).expanduser()
    opened = Findings.open(_find_folder(path, findings))
    labels = _read_source(path, opened, format)
    if not labels:
        raise BadInput(f"{path} names nothing: {_explain_naming(path)}.")
    return opened, labels


def read_names(findings: Findings) -> dict[str, str]:
    """The names that people wrote into the tables of findings, by the identity of the instance."""
    found, clusters = findings.assignments, Names()
    rows = _read_instance_names(read_sheet(findings.path / ROWS), found)
    if (findings.path / CLUSTERS).is_file():
        clusters = read_cluster_names(read_sheet(findings.path / CLUSTERS), found)
    return _name_instances(rows, clusters, found)


def _read_source(path: Path, opened: Findings, format: str | None) -> dict[str, str]:
    if format is None and (path / HEAD).is_file():
        return read_names(opened)
    name = find_format(path, format)
    if name is None and path.is_dir():
        raise BadInput(
            f"{path} holds no labels: name a findings folder, or a folder that 'cilf export' "
            f"wrote. The formats are {', '.join(FORMATS)}."
        )
    if name is None or FORMATS[name] is CSV:
        sheet = read_sheet(path / CSV.file if path.is_dir() else path)
        return _name_instances(*_read_names(sheet, opened.assignments), opened.assignments)
    rows = _match_entries(path, _read_entries(path, name), opened)
    return _name_instances(rows, {}, opened.assignments)


def _name_instances(
    rows: Mapping[int, str], clusters: Mapping[int, str], found: Assignments
) -> dict[str, str]:
    """The name of each named instance by its identity; its own comes before that of its cluster."""
    ids = found.ids.tolist()
    names = _name_members(clusters, found) | dict(rows)
    return {ids[row]: name for row, name in names.items() if name != LEFT_OUT}


def _explain_naming(path: Path) -> str:
    if path.is_dir() and not (path / HEAD).is_file():
        return "label instances in the program that the export is for"
    return (
        f"write names into the column 'name' of {CLUSTERS} (for all members of a cluster) or of "
        f"{ROWS} (for single instances)"
    )


# ----------------------------------------------------------------- other formats


def name_picture(findings: Findings, row: int) -> str:
    """The name of the file of an instance in an export, without its suffix."""
    return f"{digest(findings.id.encode())[:8]}-{row:06d}"


def _read_entries(path: Path, name: str) -> Iterable[Entry]:
    format = FORMATS[name]
    if path.is_dir() and format.read_folder is not None:
        return list(format.read_folder(path))
    file = path / format.file if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror}): check the path.") from error
    try:
        return list(format.parse(content))
    except BadInput as error:
        raise BadInput(f"{file} as {format.title}: {error}") from error


def _match_entries(path: Path, entries: Iterable[Entry], findings: Findings) -> Names:
    """The label of each row of the findings that entries are about."""
    ids = findings.assignments.ids.tolist()
    row_of = {identity: row for row, identity in enumerate(ids)}
    names: Names = {}
    for entry in entries:
        row = row_of.get(entry.identity) if entry.identity else _find_row(entry.file, findings)
        if row is None:
            raise BadInput(
                f"{path}, {entry.where}: the findings hold no {entry.identity or entry.file!r}: "
                "name the findings it is from with --findings."
            )
        name = normalize_name(entry.label)
        if not name:
            continue
        try:
            check_name(name)
        except BadInput as error:
            raise BadInput(f"{path}, {entry.where}: {error}") from error
        if names.setdefault(row, name) != name:
            raise BadInput(
                f"{path} gives {ids[row]!r} two names, {names[row]!r} and {name!r} "
                f"({entry.where}): clear one."
            )
    return names


def _find_row(file: str, findings: Findings) -> int | None:
    """The row of a file that :func:`name_picture` named; None if it is of other findings."""
    found = re.fullmatch(r"[0-9a-f]{8}-([0-9]{6,9})", Path(file).stem)
    row = int(found[1]) if found else len(findings.assignments.ids)
    if row >= len(findings.assignments.ids) or name_picture(findings, row) != Path(file).stem:
        return None
    return row


# ----------------------------------------------------------------- tables


def _find_folder(path: Path, findings: str | Path | None) -> Path:
    if findings is not None:
        return Path(findings).expanduser()
    if not path.exists():
        raise BadInput(f"{describe_missing(path)}: name a findings folder, or a table of labels.")
    folder = path if (path / HEAD).is_file() else path.parent
    if (folder / HEAD).is_file():
        return folder
    if path.is_dir() and find_format(path) is None:
        return path  # refused as no findings
    raise BadInput(
        f"{path} does not lie in a findings folder: say with --findings which one it is about."
    )


def _read_names(sheet: Sheet, found: Assignments) -> tuple[Names, Names]:
    """Read the names of instances and of clusters in a table."""
    columns = set(sheet.columns)
    if {"identity", "name"} <= columns:
        return _read_instance_names(sheet, found), {}
    if {"identity", "label"} <= columns:
        return _collect(sheet, "label", match_rows(sheet, found)), {}
    if {"cluster", "name"} <= columns:
        return {}, read_cluster_names(sheet, found)
    listed = ", ".join(map(repr, sheet.columns))
    raise BadInput(
        f"{sheet.path} has the columns {listed}: it needs 'identity' and 'label' (or 'name'), or "
        "'cluster' and 'name'."
    )


def _read_instance_names(sheet: Sheet, found: Assignments) -> Names:
    for column in ("identity", "name"):
        _require_column(sheet, column)
    row_of = match_rows(sheet, found)
    names = _collect(sheet, "name", row_of)
    if "label" not in sheet.columns:
        return names
    written = {row_of[row.line]: normalize_name(row.cells["label"]) for row in sheet.rows}
    new = {i: label for i, label in written.items() if label and found.cluster[i] >= 0}
    for i, label in new.items():
        if names.setdefault(i, label) != label:
            raise BadInput(
                f"{sheet.path} gives {str(found.ids[i])!r} the label {label!r} and the name "
                f"{names[i]!r}: clear one of them."
            )
    _report_changed_labels(sheet, written, names, found)
    return names


def _report_changed_labels(
    sheet: Sheet, written: Mapping[int, str], names: Names, found: Assignments
) -> None:
    """Report labels of known instances that were changed, maybe by a spreadsheet."""
    changed = [
        str(found.ids[i])
        for i, label in written.items()
        if found.cluster[i] < 0 and i not in names and label != normalize_name(str(found.label[i]))
    ]
    if changed:
        warn_once(
            f"{sheet.path}: the label of {len(changed)} known instances was changed "
            f"({_list_some(changed)}), which does not count: write the right one into 'name'."
        )


def read_cluster_names(sheet: Sheet, found: Assignments) -> Names:
    """Read the names of clusters in a table, by number from 0."""
    for column in ("cluster", "name"):
        _require_column(sheet, column)
    n_clusters = len(found.cluster_sizes)
    number_of = {}
    for row in sheet.rows:
        text = row.cells["cluster"].removesuffix(".0")  # as some spreadsheets write numbers
        if not text.isdecimal() or not 1 <= int(text) <= n_clusters:
            raise BadInput(
                f"{sheet.path} names the cluster {text!r} (line {row.line}): the findings have "
                f"{n_clusters}, counted from 1."
            )
        number_of[row.line] = int(text) - 1
    return _collect(sheet, "name", number_of)


def _require_column(sheet: Sheet, column: str) -> None:
    if column not in sheet.columns:
        raise BadInput(
            f"{sheet.path} lacks the column {column!r} (it has "
            f"{', '.join(map(repr, sheet.columns))}): put it back."
        )


def match_rows(sheet: Sheet, found: Assignments) -> dict[int, int]:
    """Match each line of a table to a row of the findings."""
    row_of = {identity: row for row, identity in enumerate(found.ids.tolist())}
    stripped = {identity.strip(): row for identity, row in row_of.items()}
    known = stripped if len(stripped) == len(row_of) else row_of
    unknown = [row for row in sheet.rows if row.cells["identity"] not in known]
    if unknown:
        listed = _list_some([f"{row.cells['identity']!r} in line {row.line}" for row in unknown])
        raise BadInput(
            f"{sheet.path} has identities that the findings do not hold ({listed}): correct them, "
            "or name the findings they are from with --findings."
        )
    return {row.line: known[row.cells["identity"]] for row in sheet.rows}


def _collect(sheet: Sheet, column: str, target: Mapping[int, int]) -> Names:
    """Collect the names in a column, by what each line is about."""
    names: Names = {}
    for row in sheet.rows:
        name = normalize_name(row.cells[column])
        if not name:
            continue
        _check_name(sheet, row, name)
        if names.setdefault(target[row.line], name) != name:
            raise BadInput(
                f"{sheet.path} gives {row.cells.get('identity') or row.cells['cluster']!r} two "
                f"names, {names[target[row.line]]!r} and {name!r} (line {row.line}): clear one."
            )
    return names


def _check_name(sheet: Sheet, row: Row, name: str) -> None:
    try:
        check_name(name)
    except BadInput as error:
        raise BadInput(f"{sheet.path}, line {row.line}: {error}") from error


def _name_members(clusters: Mapping[int, str], found: Assignments) -> Names:
    return {
        row: name
        for cluster, name in clusters.items()
        for row in np.flatnonzero(found.cluster == cluster).tolist()
    }


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
