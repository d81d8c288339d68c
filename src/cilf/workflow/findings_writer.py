"""Write a findings folder: tables, contact sheets and the instances."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cilf.core import Detection
from cilf.core.files import (
    PENDING,
    explain_write_errors,
    make_folder,
    put_folder,
    replace_file,
    restore_folder,
    swap_folders,
    write_file,
)
from cilf.core.locks import hold_lock
from cilf.core.notices import warn_once
from cilf.core.progress import report
from cilf.core.types import Array, Floats, Ints
from cilf.data import Instances
from cilf.data.spreadsheets import escape_surrogates, format_csv
from cilf.errors import BadConfig
from cilf.query import choose_queries
from cilf.report.unusual_values import KnownValues
from cilf.workflow.cluster_sheets import make_sheet
from cilf.workflow.content_columns import choose_content_columns
from cilf.workflow.findings import (
    CLUSTERS,
    FORMAT,
    HEAD,
    KEPT,
    MODEL,
    ROWS,
    Assignments,
    Findings,
    checksum,
    pack_texts,
    sheet_name,
)
from cilf.workflow.findings_view import write_page

NAME = "name"  # the column that people fill
COLUMNS = ("identity", "label", "source", "novelty", "novelty_p", "cluster", NAME)
CLUSTER_COLUMNS = ("cluster", "instances", "looks_like", "sheet", NAME)
MOST_SHOWN = 40  # members of a cluster on its sheet
MOST_COMPARED = 5000  # members of a cluster that those on its sheet are chosen from


@contextmanager
def hold_findings(out: Path) -> Iterator[None]:
    """Keep other commands from writing findings to a folder inside the block."""
    make_folder(out.parent)
    with hold_lock(out.with_name(f".{out.name}.lock"), out, remove=True):
        pending = _name_pending(out)
        restore_folder(pending, out)
        shutil.rmtree(pending, ignore_errors=True)  # of a command that was killed
        yield


def _name_pending(out: Path) -> Path:
    return out.with_name(f".{out.name}{PENDING}")


@dataclass(frozen=True)
class Content:
    """What a findings folder is written from.

    Attributes:
        X: the instances.
        columns: the columns of the table that they come from; none if it was no table.
        assignments: the class or cluster of each instance.
        embedding: the embedding of each instance.
        known: the usual values of the known classes; None if instances are no rows of numbers.
        has_page: whether there is a page with every member of every cluster.
    """

    X: Array
    columns: tuple[str, ...]
    assignments: Assignments
    embedding: Floats
    known: KnownValues | None
    has_page: bool


@dataclass(frozen=True)
class Written:
    """What people wrote into the tables of findings.

    Attributes:
        clusters: the names of clusters, by number from 0.
        rows: the cells of instances, by row: their names, and those of columns that people added.
    """

    clusters: Mapping[int, str] = field(default_factory=dict)
    rows: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


def write_findings(
    out: Path,
    about: dict[str, Any],
    instances: Instances,
    detection: Detection,
    source: Array | None = None,
    *,
    known: KnownValues | None = None,
    page: bool = True,
) -> Findings:
    """Write a findings folder, which appears whole or not at all; call it in ``hold_findings``.

    Args:
        out: the folder.
        about: the origin of the findings, for findings.json.
        instances: the instances.
        detection: what was detected.
        source: who gave the label of each instance, (n,); None is the model in all cases.
        known: the usual values of the known classes, if the instances are rows of numbers.
        page: write a page with every member of every cluster.
    """
    assignments = Assignments(
        ids=escape_ids(instances.ids),
        label=detection.label.astype(str),
        novelty=detection.novelty.astype(np.float32),
        novelty_p=detection.novelty_p.astype(np.float32),
        cluster=detection.cluster.astype(np.int64),
        source=np.full(len(instances), MODEL) if source is None else source,
    )
    head = {
        "id": uuid.uuid4().hex,
        **about,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "count_probability": {str(k): round(p, 4) for k, p in detection.count_probability.items()},
    }
    columns = tuple(map(escape_surrogates, instances.columns))
    content = Content(instances.X, columns, assignments, detection.embedding, known, page)
    with _replacing(out) as pending:
        pending.mkdir()
        _fill(pending, out.name, head, content, Written())
    return Findings(out)


def rewrite_findings(
    findings: Findings, cluster: Ints, written: Written, edit: Mapping[str, Any]
) -> Findings:
    """Write findings with other clusters in place of the present ones, whole or not at all.

    Call it in ``hold_findings``.

    Args:
        findings: the findings.
        cluster: the new cluster of each instance, (n,).
        written: what people wrote into the tables, for the new clusters.
        edit: what was done, for findings.json.
    """
    out = findings.path
    content = Content(
        X=findings.instances(np.arange(len(cluster))),
        columns=findings.columns,
        assignments=replace(findings.assignments, cluster=cluster),
        embedding=findings.embedding,
        known=findings.known_values,
        has_page=findings.page is not None,
    )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    edits = [*findings.about.get("edits", ()), {"time": now, **edit}]
    sheets = [findings.sheet(number) for number in range(len(findings.assignments.cluster_sizes))]
    with _replacing(out) as pending:
        shutil.copytree(out, pending)  # people may have put other files there
        for sheet in filter(None, sheets):
            (pending / sheet.name).unlink()
        _fill(pending, out.name, {**findings.about, "edits": edits}, content, written)
    return Findings(out)


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """The path of a folder that replaces ``out`` after the block, if nothing goes wrong there."""
    pending = _name_pending(out)
    try:
        with explain_write_errors(out):
            yield pending
            _replace(pending, out)
    finally:
        shutil.rmtree(pending, ignore_errors=True)  # the former folder, or an unfinished one


def escape_ids(ids: Array) -> Array:
    """Identities as a file can hold them: a path need not be UTF-8."""
    return np.array([escape_surrogates(str(identity)) for identity in ids.tolist()], dtype=str)


def _fill(
    folder: Path, name: str, head: Mapping[str, Any], content: Content, written: Written
) -> None:
    assignments = content.assignments
    _write_sheets(folder, content, _choose_shown(content))
    _write_tables(folder, content, written)
    if content.has_page:
        data = str(head.get("data", ""))
        write_page(
            folder, name, data, content.X, assignments, columns=content.columns,
            known=content.known, names=written.clusters, originals=find_originals(data),
        )  # fmt: skip
    write_file(folder / KEPT, lambda file: _pack(content, file))
    with (folder / KEPT).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    head = {
        **head,
        "n_instances": len(assignments.ids),
        "known": assignments.known_counts,
        "clusters": assignments.cluster_sizes,
        "columns": list(content.columns),
        "sha256": digest,
    }
    head["format"] = FORMAT  # also of findings that an earlier cilf wrote
    head["checksum"] = checksum(head)
    replace_file(folder / HEAD, json.dumps(head, indent=1).encode())


def find_originals(data: str) -> Path | None:
    """The folder in which images have their identities as paths; None if the data are elsewhere."""
    path = Path(data).expanduser()
    folder = path if path.is_dir() else path.parent
    return folder if data and path.exists() else None


def _choose_shown(content: Content) -> Ints:
    """The representative members of each cluster, for the contact sheets.

    Of a large cluster they are chosen from members at equal intervals.
    """
    found = content.assignments
    n_clusters = len(found.cluster_sizes)
    members = [np.flatnonzero(found.cluster == cluster) for cluster in range(n_clusters)]
    spaced = [rows[:: -(-len(rows) // MOST_COMPARED)] for rows in members]
    rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *spaced]))
    detection = Detection(
        novelty=found.novelty[rows], label=found.label[rows], cluster=found.cluster[rows],
        n_novel=n_clusters, curve={}, embedding=content.embedding[rows],
    )  # fmt: skip
    return rows[choose_queries(detection, MOST_SHOWN, strategy="representative", seed=0, window=0)]


def _replace(pending: Path, out: Path) -> None:
    if out.exists():
        swap_folders(pending, out)
    else:
        put_folder(pending, out)


def _pack(content: Content, file: BinaryIO) -> None:
    X, known = content.X, content.known
    arrays: dict[str, Any] = {"X": np.asarray(X)} if X.ndim > 1 else pack_texts(X)
    if known is not None:
        arrays |= {"known_medians": known.medians, "known_spreads": known.spreads}
    np.savez_compressed(file, embedding=content.embedding, **vars(content.assignments), **arrays)


# ----------------------------------------------------------------- tables


def list_columns(findings: Findings) -> tuple[str, ...]:
    """The columns of findings.csv that a detection writes."""
    first = findings.instances(np.arange(min(1, len(findings.assignments.ids))))
    return (*COLUMNS, *choose_content_columns(first, findings.columns, taken=COLUMNS).names)


def _write_tables(folder: Path, content: Content, written: Written) -> None:
    assignments = content.assignments
    shown = choose_content_columns(content.X, content.columns, taken=COLUMNS)
    cells = (column for row in written.rows.values() for column in row if column != NAME)
    added = tuple(dict.fromkeys(cells))  # by people

    def list_cells() -> Iterator[tuple[str, ...]]:
        for row, own in _list_rows(assignments):
            theirs = written.rows.get(row, {})
            name, more = theirs.get(NAME, ""), (theirs.get(column, "") for column in added)
            yield (*own, name, *shown.cells(content.X[row]), *more)

    replace_file(folder / ROWS, format_csv((*COLUMNS, *shown.names, *added), list_cells()))
    clusters = [
        (*_describe_cluster(folder, assignments, cluster), written.clusters.get(cluster, ""))
        for cluster in range(len(assignments.cluster_sizes))
    ]
    replace_file(folder / CLUSTERS, format_csv(CLUSTER_COLUMNS, clusters))


def _list_rows(assignments: Assignments) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The row and all cells but the name of each instance.

    Clusters come first, each from its most novel member on; then known instances in their order.
    """
    novel = assignments.cluster >= 0
    order = np.lexsort(
        (np.where(novel, -assignments.novelty, 0), np.where(novel, assignments.cluster, 1 << 32))
    )
    for row in order.tolist():
        new = bool(novel[row])
        label = "" if new else str(assignments.label[row])
        cluster = str(assignments.cluster[row] + 1) if new else ""
        scores = (f"{each[row]:.4g}" for each in (assignments.novelty, assignments.novelty_p))
        source = str(assignments.source[row])
        yield row, (str(assignments.ids[row]), label, source, *scores, cluster)


def _describe_cluster(folder: Path, assignments: Assignments, cluster: int) -> tuple[str, ...]:
    """All cells of a cluster but its name."""
    sheet = Findings(folder).sheet(cluster)
    size, nearest = assignments.cluster_sizes[cluster], assignments.nearest_class(cluster)
    return str(cluster + 1), str(size), nearest, "" if sheet is None else sheet.name


# ----------------------------------------------------------------- contact sheets


def _write_sheets(folder: Path, content: Content, shown: Ints) -> None:
    assignments = content.assignments
    sizes = assignments.cluster_sizes
    for cluster, size in enumerate(sizes):
        rows = shown[assignments.cluster[shown] == cluster]
        title = f"cluster {cluster + 1}: {len(rows)} of {size} instances"
        try:
            suffix, sheet = make_sheet(
                content.X[rows], assignments.ids[rows].tolist(), title,
                columns=content.columns, known=content.known,
            )  # fmt: skip
        except BadConfig as missing:  # the packages that pictures need are an extra
            warn_once(f"no contact sheets: {missing}")
            return
        replace_file(folder / sheet_name(cluster, suffix), sheet)
        report("sheets", cluster + 1, len(sizes))
