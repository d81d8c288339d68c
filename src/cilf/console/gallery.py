"""The gallery of a window, which the page shows. The worker writes it, the server reads it.

::

    view.npz          identities, labels and their sources, novelty, clusters, places on the map
    embedding.npy     (n, d) of the detection, memory-mapped: a page needs some rows only
    features.npy      (n, e) by the model itself, to compare with what the model keeps
    thumbs.bin        thumbnails as PNG one after another, or the beginnings of texts
    thumbs.npy        the end of each of them
    whole.bin         larger pictures or whole texts in the same way, where no file of the source
    whole.npy         shows them
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
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

VIEW, EMBEDDING, FEATURES, FORM = "view.npz", "embedding.npy", "features.npy", "form.json"
THUMBS, WHOLE = "thumbs", "whole"  # packed files
IMAGES, STRIPS, TEXTS, VECTORS = "images", "strips", "texts", "vectors"  # forms
N_EXEMPLARS = 4  # nearest, farthest and random members, each


FORMS = {
    "ids": ArrayForm("U", ndim=1, rows="n"),
    "label": ArrayForm("U", ndim=1, rows="n"),
    "source": ArrayForm("U", ndim=1, rows="n", optional=True),
    "novelty": ArrayForm("f", ndim=1, rows="n"),
    "cluster": ArrayForm("i", ndim=1, rows="n"),
    "places": ArrayForm("f", ndim=2, rows="n"),
    "stack": ArrayForm("i", ndim=1, rows="n", optional=True),
}


class FormDocument(Document):
    """The schema of form.json."""

    form: Literal["images", "strips", "texts", "vectors"]


@dataclass(frozen=True)
class Packed:
    """Pieces of bytes one after another in a file, with the end of each in another."""

    folder: Path
    name: str
    n: int  # pieces

    @cached_property
    def _ends(self) -> Ints:
        name = f"{self.name}.npy"
        ends = parse_npy(read_content(self.folder / name), name)
        if ends.dtype.kind != "i" or ends.shape != (self.n,):
            raise Damage(f"{name} has no valid array")
        if (np.diff(ends, prepend=0) < 0).any():
            raise Damage(f"{name} does not go up")
        return ends

    def exists(self) -> bool:
        return (self.folder / f"{self.name}.npy").is_file()

    def read(self, row: int) -> bytes:
        start, end = int(self._ends[row - 1]) if row else 0, int(self._ends[row])
        return read_part(self.folder / f"{self.name}.bin", start, end)

    def write(self, pieces: Sequence[bytes]) -> None:
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        replace_file(self.folder / f"{self.name}.bin", b"".join(pieces))
        replace_file(self.folder / f"{self.name}.npy", _npy(ends))


@dataclass(frozen=True)
class Gallery:
    """The files of one window."""

    folder: Path

    def exists(self) -> bool:
        return (self.folder / VIEW).is_file()  # written last

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

    @property
    def stack(self) -> Ints:
        """(n,) the first row of the near-duplicates that each instance is one of."""
        stack = self._view.get("stack")  # windows of earlier versions have none
        return np.arange(len(self.ids)) if stack is None else stack

    @cached_property
    def embedding(self) -> Floats:
        with self._explaining_damage():
            embedding = map_npy(self.folder / EMBEDDING, ArrayForm("f", ndim=2))
            if len(embedding) != len(self.ids):
                raise Damage(f"{EMBEDDING} has another length")
            return embedding

    @cached_property
    def features(self) -> Floats:
        """(n, e) the embedding by the model itself. A detection may use a space of its own."""
        path = self.folder / FEATURES
        if not path.is_file():  # windows of earlier versions, and what a model keeps
            return self.embedding
        with self._explaining_damage():
            return map_npy(path, ArrayForm("f", ndim=2))

    @cached_property
    def directions(self) -> Floats:
        """(n, d) the embedding with rows of length one, in memory."""
        return scale_to_unit(np.asarray(self.embedding))

    @cached_property
    def form(self) -> str:
        """The form of the instances: "images", "strips", "texts", or "vectors" without pictures."""
        with self._explaining_damage():
            return str(read_document(self.folder / FORM, FormDocument)["form"])

    @cached_property
    def _thumbs(self) -> Packed:
        return Packed(self.folder, THUMBS, len(self.ids))

    @cached_property
    def _whole(self) -> Packed | None:
        packed = Packed(self.folder, WHOLE, len(self.ids))
        return packed if packed.exists() else None

    def thumb(self, row: int) -> bytes:
        """The picture of an instance, or the beginning of its text."""
        with self._explaining_damage():
            return self._thumbs.read(row)

    def whole(self, row: int) -> bytes | None:
        """The larger picture or the whole text of an instance; None if it is not kept here."""
        with self._explaining_damage():
            return None if self._whole is None else self._whole.read(row)

    @property
    def has_pictures(self) -> bool:
        return self.form in (IMAGES, STRIPS)

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
    whole: list[bytes] | None = None,
    stack: Ints | None = None,
    features: Floats | None = None,
    source: Array | None = None,
) -> Gallery:
    """Write the files of a window."""
    make_folder(folder)
    Packed(folder, THUMBS, len(thumbs)).write(thumbs)
    if whole is not None:
        Packed(folder, WHOLE, len(whole)).write(whole)
    replace_file(folder / EMBEDDING, _npy(embedding.astype(np.float32)))
    if features is not None:
        replace_file(folder / FEATURES, _npy(features.astype(np.float32)))
    replace_file(folder / FORM, json.dumps({"form": form}).encode())
    packed = io.BytesIO()
    stack = np.arange(len(ids)) if stack is None else stack
    source = np.full(len(ids), "model") if source is None else source
    np.savez(
        packed,
        ids=ids,
        label=label,
        novelty=novelty,
        cluster=cluster,
        places=places,
        stack=stack,
        source=source,
    )
    replace_file(folder / VIEW, packed.getvalue())
    return Gallery(folder)


def scale_to_unit(vectors: Floats) -> Floats:
    """The rows scaled to length one; rows of zeros stay.

    >>> scale_to_unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), dtype=np.float32)


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
