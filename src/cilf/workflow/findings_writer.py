"""Write a findings folder: tables, contact sheets and the instances."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
)
from cilf.core.locks import hold_lock
from cilf.core.notices import warn_once
from cilf.core.progress import report
from cilf.core.types import Array, Floats, Ints
from cilf.data import Instances
from cilf.data.spreadsheets import escape_surrogates, format_csv
from cilf.errors import BadConfig
from cilf.evaluate.snapshot import excerpts, thumbnails
from cilf.query import choose_queries
from cilf.report.contact_sheet import make_contact_sheet
from cilf.workflow.findings import (
    CLUSTERS,
    FORMAT,
    HEAD,
    KEPT,
    MODEL,
    ROWS,
    Assignments,
    Findings,
    pack_texts,
    sheet_name,
)

COLUMNS = ("identity", "label", "source", "novelty", "novelty_p", "cluster", "name")
CLUSTER_COLUMNS = ("cluster", "instances", "looks_like", "sheet", "name")
MOST_SHOWN = 40  # members of a cluster on its sheet
SHEET_SIDE = 96  # pixels of an image on a sheet


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


def write_findings(
    out: Path,
    about: dict[str, Any],
    instances: Instances,
    detection: Detection,
    source: Array | None = None,
) -> Findings:
    """Write a findings folder, which appears whole or not at all; call it in ``hold_findings``.

    ``source`` says who gave the label of each instance; None is the model in all cases.
    """
    assignments = Assignments(
        ids=escape_ids(instances.ids),
        label=detection.label.astype(str),
        novelty=detection.novelty.astype(np.float32),
        novelty_p=detection.novelty_p.astype(np.float32),
        cluster=detection.cluster.astype(np.int64),
        source=np.full(len(instances), MODEL) if source is None else source,
    )
    pending = _name_pending(out)
    try:
        with explain_write_errors(out):
            pending.mkdir()
            _fill(pending, about, instances, detection, assignments)
            _replace(pending, out)
    finally:
        shutil.rmtree(pending, ignore_errors=True)  # the former folder, or an unfinished one
    return Findings(out)


def escape_ids(ids: Array) -> Array:
    """Identities as a file can hold them: a path need not be UTF-8."""
    return np.array([escape_surrogates(str(identity)) for identity in ids.tolist()], dtype=str)


def _fill(
    folder: Path,
    about: dict[str, Any],
    instances: Instances,
    detection: Detection,
    assignments: Assignments,
) -> None:
    shown = choose_queries(detection, MOST_SHOWN, strategy="representative", seed=0, window=0)
    _write_sheets(folder, instances, assignments, shown)
    _write_tables(folder, assignments)
    kept = _pack(assignments, instances.X, detection.embedding)
    replace_file(folder / KEPT, kept)
    head = {
        "format": FORMAT,
        "id": uuid.uuid4().hex,
        **about,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_instances": len(assignments.ids),
        "known": assignments.known_counts,
        "clusters": assignments.cluster_sizes,
        "count_probability": {str(k): round(p, 4) for k, p in detection.count_probability.items()},
        "sha256": hashlib.sha256(kept).hexdigest(),
    }
    replace_file(folder / HEAD, json.dumps(head, indent=1).encode())


def _replace(pending: Path, out: Path) -> None:
    if out.exists():
        swap_folders(pending, out)
    else:
        put_folder(pending, out)


def _pack(assignments: Assignments, X: Array, embedding: Floats) -> bytes:
    content: dict[str, Any] = {"X": np.asarray(X)} if X.ndim > 1 else pack_texts(X)
    packed = io.BytesIO()
    np.savez_compressed(packed, embedding=embedding, **vars(assignments), **content)
    return packed.getvalue()


# ----------------------------------------------------------------- tables


def _write_tables(folder: Path, assignments: Assignments) -> None:
    replace_file(folder / ROWS, format_csv(COLUMNS, list(_list_rows(assignments))))
    sizes = assignments.cluster_sizes
    clusters = [_describe_cluster(folder, assignments, cluster) for cluster in range(len(sizes))]
    replace_file(folder / CLUSTERS, format_csv(CLUSTER_COLUMNS, clusters))


def _list_rows(assignments: Assignments) -> Iterator[tuple[str, ...]]:
    """Clusters first, each from its most novel member on; then known instances in their order."""
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
        yield str(assignments.ids[row]), label, source, *scores, cluster, ""


def _describe_cluster(folder: Path, assignments: Assignments, cluster: int) -> tuple[str, ...]:
    sheet = Findings(folder).sheet(cluster)
    size, nearest = assignments.cluster_sizes[cluster], assignments.nearest_class(cluster)
    return str(cluster + 1), str(size), nearest, "" if sheet is None else sheet.name, ""


# ----------------------------------------------------------------- contact sheets


def _write_sheets(
    folder: Path, instances: Instances, assignments: Assignments, shown: Ints
) -> None:
    sizes = assignments.cluster_sizes
    for cluster, size in enumerate(sizes):
        rows = shown[assignments.cluster[shown] == cluster]
        title = f"cluster {cluster + 1}: {len(rows)} of {size} instances"
        try:
            suffix, content = _make_sheet(instances.X[rows], assignments.ids[rows].tolist(), title)
        except BadConfig as missing:  # the packages that pictures need are an extra
            warn_once(f"no contact sheets: {missing}")
            return
        replace_file(folder / sheet_name(cluster, suffix), content)
        report("sheets", cluster + 1, len(sizes))


def _make_sheet(X: Array, ids: list[str], title: str) -> tuple[str, bytes]:
    if X.ndim == 1:
        texts = zip(ids, excerpts(X).tolist(), strict=True)
        lines = [title, "", *(f"{identity}: {text}" for identity, text in texts)]
        return "txt", ("\n".join(lines) + "\n").encode(errors="replace")
    return "png", make_contact_sheet(thumbnails(X, largest=SHEET_SIDE), ids, title)
