"""Contact sheets: what is in each cluster the learner found, as real images or texts."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cilf.core.types import Array, Ints
from cilf.evaluate.records import LONGEST_EXCERPT, Drawing
from cilf.report import findings
from cilf.report.findings import Cluster
from cilf.report.marks import Mark

MOST_SHOWN = 32  # members of a cluster on its sheet
MOST_MISSED = 18
MOST_READ = 8  # texts on a sheet, of a cluster or missed: they take more room than images
LONGEST_TAG = 3
LONGEST_NAME = 24  # characters of an identity
LARGEST_SIDE = {True: 128, False: 48}  # pixels kept of a strip, of an image


@dataclass(frozen=True)
class Member:
    """An instance on a sheet."""

    image: str  # a data URI; "" for a text
    text: str  # how a text begins; "" for an image
    id: str
    truth: str
    nearest: str  # the known class it looks most like
    right: bool

    @property
    def tag(self) -> str:
        """The true class, where it is short enough to be printed on the image."""
        return self.truth if len(self.truth) <= LONGEST_TAG else ""

    @property
    def name(self) -> str:
        """The identity, where a whole path would take too much room."""
        return shortened(self.id, LONGEST_NAME)


@dataclass(frozen=True)
class Missed:
    """Instances of novel classes that were taken for known ones."""

    members: list[Member]
    classes: list[tuple[str, int]]  # class, how many of it were drawn


@dataclass(frozen=True)
class Sheet:
    """A cluster and its members; ``more`` are left out for space."""

    cluster: Cluster
    mark: Mark | None  # of the matched class
    members: list[Member]
    more: int
    strangers: list[tuple[str, int]]  # drawn members of other classes: class, how many
    form: str  # how its members are drawn, see ``form``


def contact_sheets(drawing: Drawing, marks: Mapping[str, Mark]) -> list[Sheet]:
    """One sheet for each cluster found."""
    return [_sheet(drawing, cluster, marks) for cluster in findings.clusters(drawing)]


def form(drawing: Drawing) -> str:
    """How the instances are drawn: "images", "strips" of one pixel's height, or "texts"."""
    return {0: "texts", 1: "strips"}.get(drawing.thumbnails.shape[1], "images")


def shortened(text: str, most: int) -> str:
    """At most so many characters, with the middle left out: a file's name is at the end.

    >>> shortened("photos/2026/garden/IMG_0012.jpg", 24)
    'photos/2…en/IMG_0012.jpg'
    """
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def missed(drawing: Drawing) -> Missed:
    """What was missed, class by class."""
    truth = findings.names(drawing.truth)
    rows = np.flatnonzero(drawing.novel & (drawing.cluster < 0))
    rows = rows[np.argsort(truth[rows], kind="stable")]
    shown = _evenly(rows, _most(drawing, MOST_MISSED)).tolist()
    members = [_member(drawing, i, right=False) for i in shown]
    return Missed(members, _tally(truth[rows]))


def _sheet(drawing: Drawing, cluster: Cluster, marks: Mapping[str, Mark]) -> Sheet:
    shown = _evenly(cluster.members, _most(drawing, MOST_SHOWN)).tolist()
    members = [_member(drawing, i, str(drawing.truth[i]) == cluster.matched) for i in shown]
    more = max(0, cluster.size - len(members))
    strangers = _tally(findings.names(drawing.truth[cluster.members[cluster.n_right :]]))
    return Sheet(cluster, marks.get(cluster.matched), members, more, strangers, form(drawing))


def _most(drawing: Drawing, images: int) -> int:
    return min(images, MOST_READ) if form(drawing) == "texts" else images


def _tally(names: Array) -> list[tuple[str, int]]:
    return Counter(names.tolist()).most_common()


def _member(drawing: Drawing, i: int, right: bool) -> Member:
    image = data_uri(drawing.thumbnails[i]) if drawing.thumbnails[i].size else ""
    id_, truth, label = (str(of[i]) for of in (drawing.ids, drawing.truth, drawing.label))
    return Member(image, _excerpt(str(drawing.texts[i])), id_, truth, label, right)


def _excerpt(text: str) -> str:
    """The text, with a sign where it was cut."""
    return f"{text}…" if len(text) >= LONGEST_EXCERPT else text


def _evenly(rows: Ints, most: int) -> Ints:
    """At most so many of them, each kind in its proportion when they are in order of kind."""
    if len(rows) <= most:
        return rows
    places = np.linspace(0, len(rows) - 1, most).round().astype(np.int64)
    return np.asarray(rows[places])


def data_uri(thumbnail: Array) -> str:
    """A thumbnail as an image that is part of the page."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(thumbnail, dtype=np.uint8))
    side = LARGEST_SIDE[thumbnail.shape[0] == 1]
    if max(image.size) > side:
        image.thumbnail((side, side))
    packed = io.BytesIO()
    image.save(packed, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode("ascii")
