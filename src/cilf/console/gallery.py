"""The gallery of a window, which the page shows. The worker writes it, the server reads it.

::

    view.npz          identities, labels and their sources, novelty, clusters, places on the map
    embedding.npy     (n, d), memory-mapped: a page needs some rows only
    thumbs.bin        thumbnails as PNG one after another, or the beginnings of texts
    thumbs.npy        the end of each of them
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from cilf.core.documents import (
    ArrayForm,
    Damage,
    Document,
    map_npy,
    parse_npy,
    read_arrays,
    read_content,
    read_document,
    read_part,
)
from cilf.core.extras import optional
from cilf.core.files import make_folder, replace_file
from cilf.core.random import generator
from cilf.core.types import Array, Floats, Ints
from cilf.errors import BadInput

VIEW, EMBEDDING, THUMBS, ENDS, FORM = (
    "view.npz", "embedding.npy", "thumbs.bin", "thumbs.npy", "form.json",
)  # fmt: skip
IMAGES, STRIPS, TEXTS = "images", "strips", "texts"
N_EXEMPLARS = 4  # nearest, farthest and random members, each


FORMS = {
    "ids": ArrayForm("U", ndim=1, rows="n"),
    "label": ArrayForm("U", ndim=1, rows="n"),
    "source": ArrayForm("U", ndim=1, rows="n", optional=True),
    "novelty": ArrayForm("f", ndim=1, rows="n"),
    "cluster": ArrayForm("i", ndim=1, rows="n"),
    "places": ArrayForm("f", ndim=2, rows="n"),
}


class FormDocument(Document):
    """The schema of form.json."""

    form: Literal["images", "strips", "texts"]


@dataclass(frozen=True)
class Gallery:
    """The files of one window."""

    folder: Path

    @cached_property
    def _view(self) -> dict[str, Array]:
        with self._explaining_damage():
            return read_arrays(self.folder / VIEW, FORMS)

    @cached_property
    def ids(self) -> list[str]:
        return [str(identity) for identity in self._view["ids"].tolist()]

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Identity -> row."""
        return {identity: row for row, identity in enumerate(self.ids)}

    @property
    def label(self) -> Array:
        """(n,) the known class that each instance is, or is nearest to."""
        return self._view["label"]

    @property
    def source(self) -> Array:
        """(n,) "person" if a person gave the label, else "model"."""
        model = np.full(len(self.ids), "model")  # the only source in windows of an earlier cilf
        return self._view.get("source", model)

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
        with self._explaining_damage():
            embedding = map_npy(self.folder / EMBEDDING, ArrayForm("f", ndim=2))
            if len(embedding) != len(self.ids):
                raise Damage(f"{EMBEDDING} has another length")
            return embedding

    @cached_property
    def form(self) -> str:
        """The form of the instances: "images", "strips" or "texts"."""
        with self._explaining_damage():
            return str(read_document(self.folder / FORM, FormDocument)["form"])

    @cached_property
    def _ends(self) -> Ints:
        with self._explaining_damage():
            ends = parse_npy(read_content(self.folder / ENDS), ENDS)
            if ends.dtype.kind != "i" or ends.shape != (len(self.ids),):
                raise Damage(f"{ENDS} has no valid array")
            if (np.diff(ends, prepend=0) < 0).any():
                raise Damage(f"{ENDS} does not go up")
            return ends

    def thumb(self, row: int) -> bytes:
        """The picture of an instance, or the beginning of its text."""
        start, end = int(self._ends[row - 1]) if row else 0, int(self._ends[row])
        with self._explaining_damage():
            return read_part(self.folder / THUMBS, start, end)

    def excerpt(self, row: int) -> str:
        return self.thumb(row).decode(errors="replace") if self.form == TEXTS else ""

    @contextmanager
    def _explaining_damage(self) -> Iterator[None]:
        try:
            yield
        except Damage as error:
            raise BadInput(
                f"the window in {self.folder} is damaged ({error}): detect it again."
            ) from error


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
    source: Array | None = None,
) -> Gallery:
    """Write the files of a window."""
    make_folder(folder)
    replace_file(folder / THUMBS, b"".join(thumbs))
    ends = np.cumsum([len(thumb) for thumb in thumbs], dtype=np.int64)
    replace_file(folder / ENDS, _npy(ends))
    replace_file(folder / EMBEDDING, _npy(embedding.astype(np.float32)))
    replace_file(folder / FORM, json.dumps({"form": form}).encode())
    packed = io.BytesIO()
    source = np.full(len(ids), "model") if source is None else source
    np.savez(
        packed, ids=ids, label=label, novelty=novelty, cluster=cluster, places=places, source=source
    )
    replace_file(folder / VIEW, packed.getvalue())
    return Gallery(folder)


def encode_png(picture: Array) -> bytes:
    """A grey (h, w) or colour (h, w, 3) picture of uint8 as PNG."""
    Image = optional("PIL.Image", extra="console", purpose="thumbnails")
    packed = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(packed, format="PNG")
    return packed.getvalue()


def _npy(array: Array) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


@dataclass(frozen=True)
class Exemplars:
    """The rows that represent a cluster: medoid, nearest, farthest and random members."""

    medoid: int
    nearest: list[int]
    farthest: list[int]
    random: list[int]


def choose_exemplars(
    embedding: Floats, members: Ints, *, seed: int, most: int = N_EXEMPLARS
) -> Exemplars:
    """Choose the exemplars of a cluster, none of them twice.

    The medoid has the least sum of squared distances to all members. That is the member nearest
    to their mean.

    >>> choose_exemplars(np.array([[0.0], [1.0], [2.0], [9.0]]), np.arange(4), seed=0, most=1)
    Exemplars(medoid=2, nearest=[1], farthest=[3], random=[0])
    """
    points = embedding[members].astype(np.float64)
    order = members[np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")]
    rows: list[int] = order.tolist()
    medoid, rest = rows[0], rows[1:]
    nearest, rest = rest[:most], rest[most:]
    farthest = rest[::-1][:most]
    rest = rest[: len(rest) - len(farthest)]
    picks = generator(seed, "exemplars", len(members)).permutation(len(rest))[:most]
    return Exemplars(medoid, nearest, farthest, [rest[i] for i in sorted(picks.tolist())])
