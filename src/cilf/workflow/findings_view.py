"""The page ``index.html`` of a findings folder: the members of every cluster.

Of a cluster with more than 1000 members it shows the most novel ones.
"""

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
from cilf.data.pixels import Form, Unreadable, is_image, read_header, read_pixels, refuse_bombs
from cilf.errors import BadConfig
from cilf.evaluate.snapshot import thumbnails
from cilf.report.findings_page import ClusterMembers, FindingsPage, Member
from cilf.report.unusual_values import KnownValues, UnusualValue, list_unusual
from cilf.workflow.findings import PAGE, Assignments

PICTURES = "pictures"
MOST_MEMBERS = 1000  # of a cluster on the page
LARGEST_SIDE = 512  # pixels of a picture
SMALL_SIDE = 64  # pixels; larger pictures are photographs, which JPEG makes small
QUALITY = 88
LONGEST_TEXT = 5000  # characters
MOST_VALUES = 6  # of an instance
FORMATS = {"png": "PNG", "jpg": "JPEG"}  # of pictures, by suffix
FORM_OF_AXES = {1: "texts", 2: "numbers"}  # by the number of axes


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
    originals: Path | None = None,
) -> None:
    """Write the page, and the pictures that the folder lacks.

    Args:
        folder: the findings folder.
        title: the name of the findings.
        data: the name of the data.
        X: the instances.
        assignments: the class or cluster of each instance.
        columns: the columns of the table that the instances come from.
        known: the usual values of the known classes, if the instances are rows of numbers.
        names: the names of clusters, by number from 0.
        originals: the folder in which identities are paths of images; they are shown larger than
            the model sees them.
    """
    try:
        sizes = assignments.cluster_sizes
        shown = [order_members(assignments, k)[:MOST_MEMBERS] for k in range(len(sizes))]
        pictures = _write_pictures(folder, X, assignments, originals, shown)
        clusters = [
            ClusterMembers(
                number=cluster + 1,
                name=(names or {}).get(cluster, ""),
                nearest=assignments.nearest_class(cluster),
                members=[
                    _describe(row, X, assignments, pictures, columns, known)
                    for row in rows.tolist()
                ],
                size=sizes[cluster],
            )
            for cluster, rows in enumerate(shown)
        ]
        form = FORM_OF_AXES.get(X.ndim, "images")
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
        values=[] if known is None else list_values(X[row], known, columns),
    )


def list_values(x: Array, known: KnownValues, columns: Sequence[str]) -> list[UnusualValue]:
    """The unusual values of a row, the most unusual first."""
    return list_unusual(x, known, name_columns(columns, len(x)), most=MOST_VALUES)


def name_columns(columns: Sequence[str], n: int) -> Sequence[str]:
    """The names of ``n`` columns; a column without a name has its number, from 1."""
    return columns if len(columns) == n else [f"value {i + 1}" for i in range(n)]


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _write_pictures(
    folder: Path, X: Array, assignments: Assignments, originals: Path | None, shown: Sequence[Ints]
) -> dict[int, str]:
    """Write the picture of each instance shown that has none yet; returns their paths by row."""
    if X.ndim < 3:
        return {}
    make_folder(folder / PICTURES)
    rows = [row for members in shown for row in np.sort(members).tolist()]
    paths: dict[int, str] = {}
    scale = find_scale(X)
    with refuse_bombs():
        for done, row in enumerate(rows, start=1):
            paths[row] = _find_picture(folder, row) or _write_picture(
                folder, row, _read_original(originals, assignments.ids[row]), X[row], scale
            )
            report("pictures", done, len(rows))
    return paths


def _find_picture(folder: Path, row: int) -> str | None:
    names = (f"{PICTURES}/{row:06d}.{suffix}" for suffix in FORMATS)
    return next((name for name in names if (folder / name).is_file()), None)


def _write_picture(
    folder: Path, row: int, original: Array | None, x: Array, scale: tuple[float, float] | None
) -> str:
    picture = original if original is not None else make_picture(x, scale)
    suffix = "png" if max(picture.shape[:2]) <= SMALL_SIDE else "jpg"
    name = f"{PICTURES}/{row:06d}.{suffix}"
    (folder / name).write_bytes(encode_picture(picture, suffix))
    return name


def _read_original(folder: Path | None, identity: str) -> Array | None:
    """Read the image that an identity names; None if it is not there any more."""
    if folder is None or not is_image(Path(identity)) or not (folder / identity).is_file():
        return None
    header = read_header(folder / identity)
    if isinstance(header, Unreadable):
        return None
    height, width = header.size
    factor = min(1.0, LARGEST_SIDE / max(height, width))
    size = max(1, round(height * factor)), max(1, round(width * factor))
    pixels = read_pixels(folder / identity, Form(size, colour=not header.grey))
    return None if isinstance(pixels, Unreadable) else pixels


def find_scale(X: Array) -> tuple[float, float] | None:
    """The range of pixels that are numbers; None if they are bytes."""
    return None if X.dtype == np.uint8 else (float(X.min()), float(X.max()))


def make_picture(x: Array, scale: tuple[float, float] | None) -> Array:
    """An instance as the model sees it; numbers are scaled by the range of all instances."""
    if scale is not None:
        low, high = scale
        x = np.round(255 * (x.astype(np.float64) - low) / max(high - low, 1e-12)).astype(np.uint8)
    return np.asarray(thumbnails(x[None], largest=LARGEST_SIDE)[0])


def encode_picture(picture: Array, suffix: str) -> bytes:
    """A picture as a file of this suffix."""
    image: Any = optional("PIL.Image", extra="report", purpose="pictures of findings")
    content = io.BytesIO()
    plain = image.fromarray(np.ascontiguousarray(picture))
    plain.save(content, format=FORMATS[suffix], quality=QUALITY)
    return content.getvalue()
