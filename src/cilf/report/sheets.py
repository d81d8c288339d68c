"""Contact sheets: what is in each cluster the learner found, as real images."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cilf.core.types import Array, Ints
from cilf.evaluate.records import Drawing
from cilf.report import findings
from cilf.report.findings import Cluster
from cilf.report.marks import Mark

MOST_SHOWN = 32  # members of a cluster on its sheet
MOST_MISSED = 18
LONGEST_TAG = 3
LARGEST_SIDE = {True: 128, False: 48}  # pixels kept of a strip, of an image


@dataclass(frozen=True)
class Member:
    """An instance on a sheet."""

    image: str  # a data URI
    id: str
    truth: str
    nearest: str  # the known class it looks most like
    right: bool

    @property
    def tag(self) -> str:
        """The true class, where it is short enough to be printed on the image."""
        return self.truth if len(self.truth) <= LONGEST_TAG else ""


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
    strips: bool  # vectors, drawn as strips of one pixel's height


def contact_sheets(drawing: Drawing, marks: Mapping[str, Mark]) -> list[Sheet]:
    """One sheet for each cluster found."""
    return [_sheet(drawing, cluster, marks) for cluster in findings.clusters(drawing)]


def missed(drawing: Drawing) -> Missed:
    """What was missed, class by class."""
    truth = findings.names(drawing.truth)
    rows = np.flatnonzero(drawing.novel & (drawing.cluster < 0))
    rows = rows[np.argsort(truth[rows], kind="stable")]
    members = [_member(drawing, i, right=False) for i in _evenly(rows, MOST_MISSED).tolist()]
    return Missed(members, _tally(truth[rows]))


def _sheet(drawing: Drawing, cluster: Cluster, marks: Mapping[str, Mark]) -> Sheet:
    shown = _evenly(cluster.members, MOST_SHOWN).tolist()
    members = [_member(drawing, i, str(drawing.truth[i]) == cluster.matched) for i in shown]
    strips = drawing.thumbnails.shape[1] == 1
    more = max(0, cluster.size - len(members))
    strangers = _tally(findings.names(drawing.truth[cluster.members[cluster.n_right :]]))
    return Sheet(cluster, marks.get(cluster.matched), members, more, strangers, strips)


def _tally(names: Array) -> list[tuple[str, int]]:
    return Counter(names.tolist()).most_common()


def _member(drawing: Drawing, i: int, right: bool) -> Member:
    image = data_uri(drawing.thumbnails[i])
    return Member(image, str(drawing.ids[i]), str(drawing.truth[i]), str(drawing.label[i]), right)


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
