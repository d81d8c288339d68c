"""Findings: what a model found in new data, in a folder that a person can view and edit.

::

    FINDINGS/
      index.html        every member of every cluster, to look through in a browser
      pictures/         the pictures of this page, if the instances are images
      findings.csv      identity, label, source, novelty, novelty_p, cluster, name: one line an
                        instance, with its text or its first values at the end
      clusters.csv      one line for each cluster; its name applies to all its members
      cluster-1.png     typical members of a cluster (cluster-1.txt if they are texts or rows)
      instances.npz     the instances themselves, so that a model can be updated from here
      findings.json     the model and the data that the findings come from, each split and merge of
                        clusters since then, and the checksums of itself and of instances.npz

The column ``name`` is empty at first. :mod:`cilf.workflow.labels` reads what people write into it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from cilf.core.documents import (
    ArrayForm,
    Count,
    Damage,
    Digest,
    Document,
    Text,
    digest,
    parse_document,
    read_content,
    unpack_arrays,
)
from cilf.core.files import describe_missing
from cilf.core.types import Array, Floats, Ints
from cilf.errors import BadInput
from cilf.report.unusual_values import KnownValues

FORMAT, UNSEALED = 4, 3  # the format that is written, and one without a digest of findings.json
PERSON, MODEL = "person", "model"  # sources of a label
HEAD, ROWS, CLUSTERS, KEPT = "findings.json", "findings.csv", "clusters.csv", "instances.npz"
PAGE = "index.html"


FORMS = {
    "ids": ArrayForm("U", ndim=1, rows="n"),
    "label": ArrayForm("U", ndim=1, rows="n"),
    "novelty": ArrayForm("f", ndim=1, rows="n"),
    "novelty_p": ArrayForm("f", ndim=1, rows="n"),
    "cluster": ArrayForm("i", ndim=1, rows="n"),
    "source": ArrayForm("U", ndim=1, rows="n", optional=True),
    "embedding": ArrayForm("f", ndim=2, rows="n"),
    "X": ArrayForm("buif", rows="n", optional=True),
    "texts": ArrayForm("u", ndim=1, optional=True),
    "ends": ArrayForm("i", ndim=1, rows="n", optional=True),
    "known_medians": ArrayForm("f", optional=True),
    "known_spreads": ArrayForm("f", optional=True),
}


class Head(Document):
    """The schema of findings.json."""

    id: Text
    model_id: Text
    version: Count | None
    data: str = ""
    columns: list[Text]
    sha256: Digest
    checksum: Digest | None = None
    n_instances: Count
    clusters: list[Count]
    known: dict[Text, Count]
    count_probability: dict[
        Annotated[str, Field(pattern="^[0-9]{1,6}$")], Annotated[float, Field(ge=0, le=1)]
    ]
    edits: list[dict[str, Any]] = Field(default_factory=list)


@dataclass(frozen=True)
class Assignments:
    """The class or cluster of each instance, as the model sees it; labels are texts."""

    ids: Array  # (n,)
    label: Array  # (n,) the known class, or the nearest one
    novelty: Floats  # (n,)
    novelty_p: Floats  # (n,)
    cluster: Ints  # (n,) -1 if known, else the cluster, from 0
    source: Array  # (n,) "person" if a person gave the label, else "model"

    @property
    def known_counts(self) -> dict[str, int]:
        """The number of instances of each known class, the most frequent class first."""
        return dict(Counter(self.label[self.cluster < 0].tolist()).most_common())

    @property
    def cluster_sizes(self) -> list[int]:
        """The number of instances of each cluster."""
        sizes: list[int] = np.bincount(self.cluster[self.cluster >= 0]).tolist()
        return sizes

    @property
    def n_novel(self) -> int:
        """The number of novel instances."""
        return int((self.cluster >= 0).sum())

    def nearest_class(self, cluster: int) -> str:
        """The known class that is nearest to most members of a cluster."""
        return str(Counter(self.label[self.cluster == cluster].tolist()).most_common(1)[0][0])


class Findings:
    """A findings folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> Findings:
        """Open the findings in a folder; a folder without findings is refused."""
        findings = cls(path)
        if not findings.exists():
            missing = describe_missing(findings.path, "folder")
            what = f"{path} holds no findings" if findings.path.exists() else missing
            raise BadInput(f"{what}: name a findings folder, which 'cilf detect' writes.")
        _ = findings.about  # refuses another format, and damage
        return findings

    def exists(self) -> bool:
        """Whether the folder holds findings."""
        return (self.path / HEAD).exists()

    @cached_property
    def about(self) -> dict[str, Any]:
        """The content of findings.json."""
        try:
            content = read_content(self.path / HEAD)
            version = parse_document(content, HEAD, Document).get("format")
            if version not in (FORMAT, UNSEALED):
                raise BadInput(
                    f"{self.path} has findings of format {version!r}, this cilf reads formats "
                    f"{UNSEALED} and {FORMAT}: detect again."
                )
            head = parse_document(content, HEAD, Head)
        except Damage as error:
            raise self._damage_error(str(error)) from error
        stated = head.pop("checksum", None)
        if stated != (checksum(head) if version == FORMAT else None):
            raise self._damage_error(f"{HEAD} is not what was written")
        return head

    @property
    def id(self) -> str:
        """The identifier of these findings, unlike that of any others."""
        return str(self.about.get("id"))

    @cached_property
    def assignments(self) -> Assignments:
        """The class or cluster of each instance."""
        names = ("ids", "label", "novelty", "novelty_p", "cluster")
        kept = {name: self._arrays[name] for name in names}
        model = np.full(len(kept["ids"]), MODEL)  # the only source in findings of an earlier cilf
        return Assignments(**kept, source=self._arrays.get("source", model))

    @property
    def count_probability(self) -> dict[int, float]:
        """The probability of each number of novel classes, the most likely number first."""
        kept = {int(k): float(p) for k, p in self.about["count_probability"].items()}
        return dict(sorted(kept.items(), key=lambda item: -item[1]))

    @property
    def embedding(self) -> Floats:
        """The embedding of each instance, (n, d), by the model that detected."""
        return self._arrays["embedding"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the instances come from; none if it was no table."""
        return tuple(self.about.get("columns", ()))

    @property
    def known_values(self) -> KnownValues | None:
        """The usual values of the known classes; None if instances are no rows of numbers."""
        if "known_medians" not in self._arrays:
            return None
        return KnownValues(self._arrays["known_medians"], self._arrays["known_spreads"])

    def instances(self, rows: Ints) -> Array:
        """The instances of these rows, in the form that the model takes."""
        if "X" in self._arrays:
            return np.asarray(self._arrays["X"][rows])
        return unpack_texts(self._arrays)[rows]

    def sheet(self, cluster: int) -> Path | None:
        """The contact sheet of a cluster, counted from 0; None if there is none."""
        paths = (self.path / sheet_name(cluster, suffix) for suffix in ("png", "txt"))
        return next((path for path in paths if path.is_file()), None)

    @property
    def page(self) -> Path | None:
        """The page with every member of every cluster; None if there is none."""
        path = self.path / PAGE
        return path if path.is_file() else None

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        try:
            content = read_content(self.path / KEPT)
            if digest(content) != self.about["sha256"]:
                raise Damage(f"{KEPT} has another checksum")
            return unpack_arrays(content, KEPT, FORMS)
        except Damage as error:
            raise self._damage_error(str(error)) from error

    def _damage_error(self, why: str) -> BadInput:
        return BadInput(f"the findings in {self.path} are damaged ({why}): detect again.")


def checksum(head: Mapping[str, Any]) -> str:
    """The digest of the content of findings.json, without the digest itself."""
    return digest(json.dumps(head, sort_keys=True).encode())


def sheet_name(cluster: int, suffix: str) -> str:
    """The file name of the contact sheet of a cluster, counted from 0."""
    return f"cluster-{cluster + 1}.{suffix}"


def pack_texts(X: Array) -> dict[str, Array]:
    """Pack texts one after another, with the end of each; arrays of objects would be pickles."""
    encoded = [text.encode() for text in X.tolist()]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"texts": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}


def unpack_texts(arrays: Mapping[str, Array]) -> Array:
    """The texts that :func:`pack_texts` packed."""
    if not {"texts", "ends"} <= set(arrays):
        raise Damage(f"{KEPT} holds neither instances nor texts")
    whole, ends = arrays["texts"].tobytes(), arrays["ends"].tolist()
    starts = [0, *ends[:-1]]
    X = np.empty(len(ends), dtype=object)
    try:
        X[:] = [whole[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise Damage(f"{KEPT} holds a text that is not UTF-8") from error
    return X
