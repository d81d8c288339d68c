"""What people wrote into the tables of a findings folder, or into one of their own.

- In ``findings.csv`` the column ``name`` counts where it is filled. A label that was filled in
  where there was none (those of new instances are empty) counts too.
- In ``clusters.csv`` the column ``name`` is the name of all members of a new kind, but for those
  that have a name of their own.
- In any other table, ``identity`` and ``label`` count.
- The name ``-`` leaves an instance, or a new kind, out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cilf.core.names import check_name, normalize_name
from cilf.core.notices import notice
from cilf.data.spreadsheets import Row, Sheet, read_sheet
from cilf.errors import BadInput
from cilf.workflow.findings import CLUSTERS, HEAD, ROWS, Findings, Found

LEFT_OUT = "-"
MOST_LISTED = 3

Named = dict[int, str]  # row of the findings, or number of a new kind from 0 -> name


def read_labels(
    source: str | Path, findings: str | Path | None = None
) -> tuple[Findings, dict[str, str]]:
    """Read the labels in a findings folder, or in a table about one.

    Args:
        source: a findings folder or a table. The two tables of a folder count together.
        findings: the folder that a table is about, if the table does not lie in it.

    Returns:
        The findings, and the label of each labelled instance by its identity, as
        :func:`cilf.workflow.update` takes them.
    """
    path = Path(source).expanduser()
    about = Findings.open(_folder(path, findings))
    if path.is_dir():
        rows, clusters = _instance_names(read_sheet(path / ROWS), about.found), {}
        if (path / CLUSTERS).is_file():
            clusters = _cluster_names(read_sheet(path / CLUSTERS), about.found)
    else:
        rows, clusters = _names_in(read_sheet(path), about.found)
    named = _members(clusters, about.found) | rows
    ids = about.found.ids.tolist()
    labels = {ids[row]: name for row, name in named.items() if name != LEFT_OUT}
    if not labels:
        raise BadInput(
            f"{path} names nothing: write names into the column 'name' of {CLUSTERS} (for all "
            f"members of a cluster) or of {ROWS} (for single instances)."
        )
    return about, labels


def _folder(path: Path, findings: str | Path | None) -> Path:
    if findings is not None:
        return Path(findings).expanduser()
    if not path.exists():
        raise BadInput(f"{path} is not there: name a findings folder, or a table of labels.")
    folder = path if path.is_dir() else path.parent
    if path.is_file() and not (folder / HEAD).is_file():
        raise BadInput(
            f"{path} does not lie in a findings folder: say with --findings which one it is about."
        )
    return folder


def _names_in(sheet: Sheet, found: Found) -> tuple[Named, Named]:
    """The names of instances and of new kinds in a table."""
    columns = set(sheet.columns)
    if {"identity", "name"} <= columns:
        return _instance_names(sheet, found), {}
    if {"identity", "label"} <= columns:
        return _collected(sheet, "label", _row_of(sheet, found)), {}
    if {"cluster", "name"} <= columns:
        return {}, _cluster_names(sheet, found)
    listed = ", ".join(map(repr, sheet.columns))
    raise BadInput(
        f"{sheet.path} has the columns {listed}: it needs 'identity' and 'label' (or 'name'), or "
        "'cluster' and 'name'."
    )


def _instance_names(sheet: Sheet, found: Found) -> Named:
    for column in ("identity", "name"):
        _require_column(sheet, column)
    row_of = _row_of(sheet, found)
    names = _collected(sheet, "name", row_of)
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
    _tell_changed(sheet, written, names, found)
    return names


def _tell_changed(sheet: Sheet, written: Mapping[int, str], names: Named, found: Found) -> None:
    """Say that a known label was changed in vain: a spreadsheet may have changed it by itself."""
    changed = [
        str(found.ids[i])
        for i, label in written.items()
        if found.cluster[i] < 0 and i not in names and label != normalize_name(str(found.label[i]))
    ]
    if changed:
        notice(
            f"{sheet.path}: the label of {len(changed)} known instances was changed "
            f"({_some(changed)}), which does not count: write the right one into 'name'."
        )


def _cluster_names(sheet: Sheet, found: Found) -> Named:
    for column in ("cluster", "name"):
        _require_column(sheet, column)
    n_clusters = len(found.sizes)
    number_of = {}
    for row in sheet.rows:
        text = row.cells["cluster"].removesuffix(".0")  # as some spreadsheets write numbers
        if not text.isdecimal() or not 1 <= int(text) <= n_clusters:
            raise BadInput(
                f"{sheet.path} names the cluster {text!r} (line {row.line}): the findings have "
                f"{n_clusters}, counted from 1."
            )
        number_of[row.line] = int(text) - 1
    return _collected(sheet, "name", number_of)


def _require_column(sheet: Sheet, column: str) -> None:
    if column not in sheet.columns:
        raise BadInput(
            f"{sheet.path} lacks the column {column!r} (it has "
            f"{', '.join(map(repr, sheet.columns))}): put it back."
        )


def _row_of(sheet: Sheet, found: Found) -> dict[int, int]:
    """Line of a table -> row of the findings."""
    row_of = {identity: row for row, identity in enumerate(found.ids.tolist())}
    stripped = {identity.strip(): row for identity, row in row_of.items()}
    known = stripped if len(stripped) == len(row_of) else row_of
    unknown = [row for row in sheet.rows if row.cells["identity"] not in known]
    if unknown:
        listed = _some([f"{row.cells['identity']!r} in line {row.line}" for row in unknown])
        raise BadInput(
            f"{sheet.path} has identities that the findings do not hold ({listed}): correct them, "
            "or name the findings they are from with --findings."
        )
    return {row.line: known[row.cells["identity"]] for row in sheet.rows}


def _collected(sheet: Sheet, column: str, target: Mapping[int, int]) -> Named:
    """What each line with something in this column names, and how."""
    named: Named = {}
    for row in sheet.rows:
        name = normalize_name(row.cells[column])
        if not name:
            continue
        _check_name(sheet, row, name)
        if named.setdefault(target[row.line], name) != name:
            raise BadInput(
                f"{sheet.path} gives {row.cells.get('identity') or row.cells['cluster']!r} two "
                f"names, {named[target[row.line]]!r} and {name!r} (line {row.line}): clear one."
            )
    return named


def _check_name(sheet: Sheet, row: Row, name: str) -> None:
    try:
        check_name(name)
    except BadInput as error:
        raise BadInput(f"{sheet.path}, line {row.line}: {error}") from error


def _members(clusters: Mapping[int, str], found: Found) -> Named:
    return {
        row: name
        for cluster, name in clusters.items()
        for row in np.flatnonzero(found.cluster == cluster).tolist()
    }


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
