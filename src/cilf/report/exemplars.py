"""The exemplars of each cluster of a window, as images or texts."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cilf.core.types import Array, Ints
from cilf.evaluate.records import LONGEST_EXCERPT, Snapshot
from cilf.report.class_style import ClassStyle
from cilf.report.clusters import Cluster, list_clusters, to_text

MAX_EXEMPLARS = 32  # of a cluster
MAX_MISSED = 18  # exemplars of what was missed in a window
MAX_TEXTS = 8  # of a cluster, or missed: texts take more room than images
MAX_TAG_LENGTH = 3  # characters
MAX_NAME_LENGTH = 24  # characters of an identity
MAX_SIDE = {True: 128, False: 48}  # pixels of a strip, of an image


@dataclass(frozen=True)
class Exemplar:
    """An instance that the page shows."""

    image: str  # a data URI; "" for a text
    text: str  # how a text begins; "" for an image
    id: str
    truth: str
    nearest: str  # the known class that is nearest
    right: bool

    @property
    def tag(self) -> str:
        """The true class, if it is short enough to be printed on the image."""
        return self.truth if len(self.truth) <= MAX_TAG_LENGTH else ""

    @property
    def name(self) -> str:
        """The identity, shortened."""
        return shorten(self.id, MAX_NAME_LENGTH)


@dataclass(frozen=True)
class Missed:
    """Instances of novel classes that were taken for known ones."""

    exemplars: list[Exemplar]
    classes: list[tuple[str, int]]  # class, how many of its instances


@dataclass(frozen=True)
class ClusterExemplars:
    """A cluster and its exemplars; ``more`` is the number of members that are left out."""

    cluster: Cluster
    style: ClassStyle | None  # of the matched class
    exemplars: list[Exemplar]
    more: int
    others: list[tuple[str, int]]  # members of other classes: class, how many
    form: str  # see ``find_form``


def select_exemplars(
    snapshot: Snapshot, styles: Mapping[str, ClassStyle]
) -> list[ClusterExemplars]:
    """Select exemplars of each cluster, wrong members in their proportion."""
    return [_of_cluster(snapshot, cluster, styles) for cluster in list_clusters(snapshot)]


def select_missed(snapshot: Snapshot) -> Missed:
    """Select exemplars of the novel instances that were missed, class by class."""
    truth = to_text(snapshot.truth)
    rows = np.flatnonzero(snapshot.novel & (snapshot.cluster < 0))
    rows = rows[np.argsort(truth[rows], kind="stable")]
    chosen = _thin_out(rows, _limit(snapshot, MAX_MISSED)).tolist()
    return Missed([_exemplar(snapshot, i, right=False) for i in chosen], _count(truth[rows]))


def find_form(snapshot: Snapshot) -> str:
    """Return how instances are shown: "images", "strips" of one pixel's height, or "texts"."""
    return {0: "texts", 1: "strips"}.get(snapshot.thumbnails.shape[1], "images")


def shorten(text: str, length: int) -> str:
    """Leave out the middle of a text that is longer: the name of a file is at the end.

    >>> shorten("photos/2026/garden/IMG_0012.jpg", 24)
    'photos/2…en/IMG_0012.jpg'
    """
    if len(text) <= length:
        return text
    head = length // 3
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def encode_thumbnail(thumbnail: Array) -> str:
    """Encode a thumbnail as a data URI, which is part of the page."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(thumbnail, dtype=np.uint8))
    side = MAX_SIDE[thumbnail.shape[0] == 1]
    if max(image.size) > side:
        image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode("ascii")


def _of_cluster(
    snapshot: Snapshot, cluster: Cluster, styles: Mapping[str, ClassStyle]
) -> ClusterExemplars:
    chosen = _thin_out(cluster.members, _limit(snapshot, MAX_EXEMPLARS)).tolist()
    exemplars = [_exemplar(snapshot, i, str(snapshot.truth[i]) == cluster.matched) for i in chosen]
    more = max(0, cluster.size - len(exemplars))
    others = _count(to_text(snapshot.truth[cluster.members[cluster.n_right :]]))
    style = styles.get(cluster.matched)
    return ClusterExemplars(cluster, style, exemplars, more, others, find_form(snapshot))


def _limit(snapshot: Snapshot, images: int) -> int:
    return min(images, MAX_TEXTS) if find_form(snapshot) == "texts" else images


def _count(names: Array) -> list[tuple[str, int]]:
    return Counter(names.tolist()).most_common()


def _exemplar(snapshot: Snapshot, i: int, right: bool) -> Exemplar:
    image = encode_thumbnail(snapshot.thumbnails[i]) if snapshot.thumbnails[i].size else ""
    id_, truth, label = (str(of[i]) for of in (snapshot.ids, snapshot.truth, snapshot.label))
    text = str(snapshot.texts[i])
    excerpt = f"{text}…" if len(text) >= LONGEST_EXCERPT else text
    return Exemplar(image, excerpt, id_, truth, label, right)


def _thin_out(rows: Ints, most: int) -> Ints:
    """Take at most so many rows, evenly, so that sorted rows keep their proportions."""
    if len(rows) <= most:
        return rows
    places = np.linspace(0, len(rows) - 1, most).round().astype(np.int64)
    return np.asarray(rows[places])
