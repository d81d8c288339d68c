"""The ledger of a model: the label that a person gave to each labelled instance.

An instance is known by its content, in the form that the model takes. Its identity, a path or a
row, may change from one file to the next. An answer that is given later replaces all earlier
answers about the same content. Renames, merges and forgotten classes apply to the answers too.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cilf.core.documents import ArrayForm, Damage, unpack_arrays
from cilf.core.rows import Rows, map_rows
from cilf.core.types import Array, Ints
from cilf.data.spreadsheets import escape_surrogates, format_csv
from cilf.workflow.findings import pack_texts, unpack_texts

COLUMNS = ("identity", "label", "content")
DIGEST_SIZE = 16  # bytes


def hash_instances(X: Array) -> list[str]:
    """The hash of the content of each instance: of its text, or of its values and their shape.

    >>> one, same, other = hash_instances(np.array([[1.0], [1.0], [2.0]]))
    >>> one == same, one == other
    (True, False)
    """
    if X.ndim > 1 and X.dtype != np.uint8:
        X = np.asarray(X, dtype=np.float32)
    kind = "text" if X.ndim == 1 else f"{X.dtype} {X.shape[1:]}"
    return [_hash(kind, _to_bytes(X[row])) for row in range(len(X))]


def _to_bytes(instance: Array | str) -> bytes:
    if isinstance(instance, str):
        return instance.encode(errors="surrogatepass")
    return np.ascontiguousarray(instance).tobytes()


def _hash(kind: str, content: bytes) -> str:
    return hashlib.blake2b(kind.encode() + b"\0" + content, digest_size=DIGEST_SIZE).hexdigest()


@dataclass(frozen=True)
class Answer:
    """The label that a person gave to an instance.

    Attributes:
        identity: the path or the row of the instance.
        content: the hash of the instance; "" in a version of an earlier cilf, which kept none.
        label: its class.
        version: the version that learned the label.
    """

    identity: str
    content: str
    label: str
    version: int


class Ledger:
    """The answers that stand.

    >>> ledger = Ledger([Answer("a.png", "c0", "dgo", 1), Answer("b.png", "c1", "cat", 1)])
    >>> ledger.add([Answer("copy-of-a.png", "c0", "dog", 2)])
    >>> ledger.find("a.png", "c0"), ledger.counts
    ('dog', {'cat': 1, 'dog': 1})
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self._answers: list[Answer] = list(answers)
        self._of_content: dict[str, list[Answer]] = {}
        self._index()

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @property
    def counts(self) -> dict[str, int]:
        """The number of answers of each class."""
        return dict(Counter(answer.label for answer in self._answers))

    def of_content(self, content: str) -> list[Answer]:
        """The answers about this content. More than one were given at once."""
        return self._of_content.get(content, [])

    def find(self, identity: str, content: str) -> str | None:
        """The label of an instance; None if there is none, or if answers differ.

        If one version learned several labels of the same content, the identity decides.
        """
        answers = self.of_content(content)
        own = [answer for answer in answers if answer.identity == identity.strip()]
        labels = {answer.label for answer in own or answers}
        return labels.pop() if len(labels) == 1 else None

    def match(self, ids: Array, X: Array | Rows) -> list[str | None]:
        """The label that a person gave to each of these instances; None where there is none."""
        (hashes,) = map_rows(lambda block: (np.array(hash_instances(block)),), X)
        pairs = zip(ids.tolist(), hashes.tolist(), strict=True)
        return [self.find(escape_surrogates(str(identity)), content) for identity, content in pairs]

    def add(self, answers: Sequence[Answer]) -> None:
        """Add the answers of one version, which replace earlier ones about the same content."""
        told = {answer.content for answer in answers if answer.content}
        kept = [answer for answer in self._answers if answer.content not in told]
        self._answers = [*kept, *answers]
        self._index()

    def complete(self, content_of: Mapping[str, str], versions: Collection[int]) -> None:
        """Add the hashes that some versions of an earlier cilf did not keep, by identity."""
        self._answers = [
            replace(answer, content=content_of.get(answer.identity, ""))
            if answer.version in versions and not answer.content
            else answer
            for answer in self._answers
        ]
        self._index()

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace the labels of classes that were renamed, or merged into another class."""
        self._answers = [
            replace(answer, label=names[answer.label]) if answer.label in names else answer
            for answer in self._answers
        ]
        self._index()

    def forget(self, labels: Iterable[str]) -> None:
        """Leave out the answers of these classes."""
        gone = set(labels)
        self._answers = [answer for answer in self._answers if answer.label not in gone]
        self._index()

    def _index(self) -> None:
        self._of_content = {}
        for answer in self._answers:
            if answer.content:
                self._of_content.setdefault(answer.content, []).append(answer)


# ----------------------------------------------------------------- in a version


@dataclass(frozen=True)
class LabelledInstances:
    """Instances with the labels that a person gave them.

    Attributes:
        X: the instances, in the form that the model takes.
        ids: their identities.
        labels: their classes.
    """

    X: Array  # (n, ...)
    ids: Sequence[str]
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def format_labels(self) -> bytes:
        """The table of the labels, with the hash of each instance."""
        rows = zip(self.ids, self.labels, hash_instances(self.X), strict=True)
        return format_csv(COLUMNS, rows)

    def pack(self) -> bytes:
        """The instances, in the order of the table."""
        content: dict[str, Any] = (
            {"X": np.asarray(self.X)} if self.X.ndim > 1 else pack_texts(self.X)
        )
        packed = io.BytesIO()
        np.savez_compressed(packed, **content)
        return packed.getvalue()


def parse_answers(content: bytes, version: int) -> list[Answer]:
    """The answers that a version has learned, from the table that ``format_labels`` made."""
    try:
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        reader = csv.DictReader(text, strict=True)
        rows = list(reader)
        is_whole = all(None not in row and None not in row.values() for row in rows)
        columns = tuple(reader.fieldnames or ())
        if not is_whole or columns not in (COLUMNS, COLUMNS[:-1]):  # an earlier cilf kept no hashes
            raise Damage("labels.csv has other columns")
        return [
            Answer(row["identity"].strip(), row.get("content", ""), row["label"], version)
            for row in rows
        ]
    except (UnicodeDecodeError, AttributeError, csv.Error) as error:
        raise Damage("labels.csv is no table of labels") from error


FORMS = {
    "X": ArrayForm("buif", rows="n", optional=True),
    "texts": ArrayForm("u", ndim=1, optional=True),
    "ends": ArrayForm("i", ndim=1, optional=True),
}


def unpack_instances(content: bytes) -> Array:
    """The instances that :meth:`LabelledInstances.pack` packed."""
    arrays = unpack_arrays(content, "instances.npz", FORMS)
    if "X" in arrays:
        return arrays["X"]
    return unpack_texts(arrays)


def select_rows(instances: LabelledInstances, rows: Ints) -> LabelledInstances:
    """Some of the instances, in this order."""
    return LabelledInstances(
        instances.X[rows],
        [instances.ids[row] for row in rows.tolist()],
        [instances.labels[row] for row in rows.tolist()],
    )
