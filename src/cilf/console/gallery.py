"""What the page shows of a window: made once by the worker, read by the server as it needs it.

::

    view.npz          identities, labels, novelty, clusters, the place of each instance on the map
    embedding.npy     (n, d), memory-mapped: a page looks at some rows only
    thumbs.bin        small PNG pictures one after another, or the beginnings of texts
    thumbs.npy        where each of them ends
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cilf.core.extras import optional
from cilf.core.files import make_folder, replace_file
from cilf.core.random import generator
from cilf.core.types import Array, Floats, Ints

VIEW, EMBEDDING, THUMBS, ENDS, FORM = (
    "view.npz", "embedding.npy", "thumbs.bin", "thumbs.npy", "form.json",
)  # fmt: skip
IMAGES, STRIPS, TEXTS = "images", "strips", "texts"
PER_CORNER = 4  # nearest, farthest and random members on a contact sheet


@dataclass(frozen=True)
class Gallery:
    """The files of one window."""

    folder: Path

    @cached_property
    def _view(self) -> dict[str, Array]:
        with np.load(self.folder / VIEW, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    @cached_property
    def ids(self) -> list[str]:
        return [str(identity) for identity in self._view["ids"].tolist()]

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Identity -> row."""
        return {identity: row for row, identity in enumerate(self.ids)}

    @property
    def label(self) -> Array:
        """(n,) the known class that each is, or looks most like."""
        return self._view["label"]

    @property
    def novelty(self) -> Floats:
        return self._view["novelty"]

    @property
    def cluster(self) -> Ints:
        return self._view["cluster"]

    @property
    def places(self) -> Floats:
        """(n, 2) on the map, from 0 to 1."""
        return self._view["places"]

    @cached_property
    def embedding(self) -> Floats:
        return np.asarray(np.load(self.folder / EMBEDDING, mmap_mode="r", allow_pickle=False))

    @cached_property
    def form(self) -> str:
        """How instances are shown: "images", "strips" or "texts"."""
        return str(json.loads((self.folder / FORM).read_text())["form"])

    @cached_property
    def _ends(self) -> Ints:
        return np.asarray(np.load(self.folder / ENDS, allow_pickle=False))

    def thumb(self, row: int) -> bytes:
        """The picture of an instance, or how its text begins."""
        start, end = int(self._ends[row - 1]) if row else 0, int(self._ends[row])
        with (self.folder / THUMBS).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def excerpt(self, row: int) -> str:
        return self.thumb(row).decode() if self.form == TEXTS else ""


def write_gallery(
    folder: Path,
    *,
    ids: Array,
    label: Array,
    novelty: Floats,
    cluster: Ints,
    embedding: Floats,
    places: Floats,
    form: str,
    thumbs: list[bytes],
) -> Gallery:
    """Write the files of a window."""
    make_folder(folder)
    replace_file(folder / THUMBS, b"".join(thumbs))
    ends = np.cumsum([len(thumb) for thumb in thumbs], dtype=np.int64)
    replace_file(folder / ENDS, _npy(ends))
    replace_file(folder / EMBEDDING, _npy(embedding.astype(np.float32)))
    replace_file(folder / FORM, json.dumps({"form": form}).encode())
    packed = io.BytesIO()
    np.savez(packed, ids=ids, label=label, novelty=novelty, cluster=cluster, places=places)
    replace_file(folder / VIEW, packed.getvalue())
    return Gallery(folder)


def png(picture: Array) -> bytes:
    """A grey (h, w) or colour (h, w, 3) picture of uint8 as a file."""
    Image = optional("PIL.Image", extra="console", purpose="drawing thumbnails")
    packed = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(packed, format="PNG")
    return packed.getvalue()


def _npy(array: Array) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


@dataclass(frozen=True)
class Corners:
    """Members that show what a group is: its middle, what is near to it, far from it, and some."""

    medoid: int
    nearest: list[int]
    farthest: list[int]
    random: list[int]


def corners(embedding: Floats, members: Ints, *, seed: int, most: int = PER_CORNER) -> Corners:
    """Those to show of a group's members, none of them twice.

    The medoid has the least sum of squared distances to all members, which makes it the one that
    is nearest to their mean.

    >>> corners(np.array([[0.0], [1.0], [2.0], [9.0]]), np.arange(4), seed=0, most=1)
    Corners(medoid=2, nearest=[1], farthest=[3], random=[0])
    """
    points = embedding[members].astype(np.float64)
    order = members[np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")]
    rows: list[int] = order.tolist()
    medoid, rest = rows[0], rows[1:]
    nearest, rest = rest[:most], rest[most:]
    farthest = rest[::-1][:most]
    rest = rest[: len(rest) - len(farthest)]
    drawn = generator(seed, "corners", len(members)).permutation(len(rest))[:most]
    return Corners(medoid, nearest, farthest, [rest[i] for i in sorted(drawn.tolist())])
