"""The page ``index.html`` of a findings folder: every member of every cluster."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.extras import optional
from cilf.core.files import make_folder, replace_file
from cilf.core.notices import warn_once
from cilf.core.progress import report
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.evaluate.snapshot import thumbnails
from cilf.report.findings_page import ClusterMembers, FindingsPage, Member
from cilf.report.unusual_values import KnownValues, UnusualValue, list_unusual
from cilf.workflow.findings import PAGE, Assignments

PICTURES = "pictures"
LARGEST_SIDE = 512  # pixels of a picture
SMALL_SIDE = 64  # pixels; larger pictures are photographs, which JPEG makes small
QUALITY = 88
LONGEST_TEXT = 5000  # characters
MOST_VALUES = 6  # of an instance
CHUNK = 256  # pictures that are scaled at once
FORMS = {1: "texts", 2: "numbers"}  # by the number of axes


def write_page(
    folder: Path,
    title: str,
    data: str,
    X: Array,
    assignments: Assignments,
    *,
    columns: Sequence[str] = (),
    known: KnownValues | None = None,
    names: Mapping[int, str] | None = None,
) -> None:
    """Write the page, and its pictures if the folder lacks them.

    Args:
        folder: the findings folder.
        title: the name of the findings.
        data: the name of the data.
        X: the instances.
        assignments: the class or cluster of each instance.
        columns: the columns of the table that the instances come from.
        known: the usual values of the known classes, if the instances are rows of numbers.
        names: the names of clusters, by number from 0.
    """
    try:
        pictures = _write_pictures(folder, X, np.flatnonzero(assignments.cluster >= 0))
        clusters = [
            ClusterMembers(
                number=cluster + 1,
                name=(names or {}).get(cluster, ""),
                nearest=assignments.nearest_class(cluster),
                members=[
                    _describe(row, X, assignments, pictures, columns, known)
                    for row in order_members(assignments, cluster).tolist()
                ],
            )
            for cluster in range(len(assignments.cluster_sizes))
        ]
        form = FORMS.get(X.ndim, "images")
        n_instances, counts = len(assignments.ids), assignments.known_counts
        page = FindingsPage(title, data, form, n_instances, counts, clusters)
        rendered = page.render()
    except BadConfig as missing:  # the packages that the page needs are an extra
        warn_once(f"no {PAGE}: {missing}")
        return
    replace_file(folder / PAGE, rendered.encode(errors="replace"))


def order_members(assignments: Assignments, cluster: int) -> Ints:
    """The members of a cluster, the most novel first."""
    members = np.flatnonzero(assignments.cluster == cluster)
    return np.asarray(members[np.argsort(-assignments.novelty[members], kind="stable")])


def _describe(
    row: int,
    X: Array,
    assignments: Assignments,
    pictures: Mapping[int, str],
    columns: Sequence[str],
    known: KnownValues | None,
) -> Member:
    return Member(
        id=str(assignments.ids[row]),
        nearest=str(assignments.label[row]),
        novelty_p=float(assignments.novelty_p[row]),
        picture=pictures.get(row, ""),
        text=_shorten(X[row]) if X.ndim == 1 else "",
        values=[] if known is None else _list_values(X[row], known, columns),
    )


def _list_values(x: Array, known: KnownValues, columns: Sequence[str]) -> list[UnusualValue]:
    """The unusual values of a row; a column without a name has its number, from 1."""
    names = columns if len(columns) == len(x) else [f"value {i + 1}" for i in range(len(x))]
    return list_unusual(x, known, names, most=MOST_VALUES)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _write_pictures(folder: Path, X: Array, rows: Ints) -> dict[int, str]:
    """Write the picture of each row that has none yet; returns their paths in the folder."""
    if X.ndim < 3:
        return {}
    suffix = "png" if max(X.shape[1:3]) <= SMALL_SIDE else "jpg"
    paths = {row: f"{PICTURES}/{row:06d}.{suffix}" for row in rows.tolist()}
    missing = np.array([row for row in rows.tolist() if not (folder / paths[row]).is_file()], int)
    if len(missing):
        make_folder(folder / PICTURES)
    step = CHUNK if X.dtype == np.uint8 else max(1, len(missing))
    for start in range(0, len(missing), step):  # floats are scaled by the range of all of them
        chunk = missing[start : start + step]
        for row, picture in zip(
            chunk.tolist(), thumbnails(X[chunk], largest=LARGEST_SIDE), strict=True
        ):
            (folder / paths[row]).write_bytes(_encode(picture, suffix))
        report("pictures", start + len(chunk), len(missing))
    return paths


def _encode(picture: Array, suffix: str) -> bytes:
    image: Any = optional("PIL.Image", extra="report", purpose="pictures of findings")
    content = io.BytesIO()
    kind = {"png": "PNG", "jpg": "JPEG"}[suffix]
    image.fromarray(np.ascontiguousarray(picture)).save(content, format=kind, quality=QUALITY)
    return content.getvalue()
