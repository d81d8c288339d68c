"""A data set: a training split, which makes the stream, and a test split, the hold-out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cilf.core import Label, validation
from cilf.core.types import Array
from cilf.errors import BadInput

MOST_HASHED = 2000  # instances of a split that the digest covers


@dataclass(frozen=True)
class Split:
    """Instances, their labels and their identities (paths or rows)."""

    X: Array  # (n, ...)
    y: Array  # (n,)
    ids: Array  # (n,)

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[Array]:
        """Yield instances and labels, for ``learner.fit(*data.train)``."""
        return iter((self.X, self.y))


@dataclass(frozen=True)
class Instances:
    """Unlabelled instances and their identities (paths or rows)."""

    X: Array  # (n, ...)
    ids: Array  # (n,)
    columns: tuple[str, ...] = ()  # of the table that X comes from, in order

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Dataset:
    """Labelled data with a name; the training split holds every class.

    Attributes:
        name: the name of the data set.
        train: the training split, which makes the stream.
        test: the test split, which is the hold-out.
        n_drawn: the number of classes that a stream draws with its seed; all classes if None.
        original_rows: the numbers of training and test rows of the original; None unless this is a
            part of it.
        columns: the columns of the table that instances come from; none if they come from no table.

    >>> data = Dataset.from_arrays("toy", [[0.0], [1.0]], ["a", "b"], [[0.5]], ["a"])
    >>> data.classes
    ['a', 'b']
    """

    name: str
    train: Split
    test: Split
    n_drawn: int | None = None
    original_rows: tuple[int, int] | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.test.y.tolist()) - set(self.train.y.tolist())
        if unknown:
            raise BadInput(
                f"data set {self.name!r}: the test split holds classes that the training split "
                f"lacks ({sorted(unknown, key=str)}): remove them."
            )

    @property
    def classes(self) -> list[Label]:
        """All classes, sorted."""
        classes: list[Label] = np.unique(self.train.y).tolist()
        return classes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one instance."""
        return self.train.X.shape[1:]

    def describe(self) -> dict[str, Any]:
        """Describe the data set for a record."""
        rows = {"train_rows": len(self.train), "test_rows": len(self.test)}
        about = {"n_classes": self.n_drawn or len(self.classes), "instance_shape": list(self.shape)}
        part = self.original_rows and list(self.original_rows)
        return rows | about | {"part_of_rows": part, "digest": self.digest()}

    def digest(self) -> str:
        """A short hash of all labels and identities and of up to 2,000 instances of each split.

        Equal digests do not prove that two large data sets are equal.
        """
        hashed = hashlib.blake2b(digest_size=8)
        for split in (self.train, self.test):
            rows = np.unique(np.linspace(0, len(split) - 1, MOST_HASHED).astype(int))
            for array in (split.y, split.ids, split.X[rows]):
                hashed.update(f"{array.dtype.kind}{array.shape}".encode())
                hashed.update(_to_bytes(array))
        return hashed.hexdigest()

    @classmethod
    def from_arrays(
        cls, name: str, X_train: object, y_train: object, X_test: object, y_test: object
    ) -> Dataset:
        """Make a data set from arrays; identities are ``train/0``, ..., ``test/0``, ..."""
        train = _make_split("train", X_train, y_train)
        test = _make_split("test", X_test, y_test, train.X.shape[1:], train.y.dtype.kind)
        return cls(name, train, test)


def _to_bytes(array: Array) -> bytes:
    if array.dtype.kind in "OUT":  # strings, each with its length
        return "".join(f"{len(text)}:{text}" for text in array.tolist()).encode(errors="replace")
    return np.ascontiguousarray(array).tobytes()


def _make_split(
    part: str, X: object, y: object, shape: tuple[int, ...] | None = None, kind: str | None = None
) -> Split:
    X_name, y_name = f"X_{part}", f"y_{part}"
    array = validation.instances(X, shape=shape, name=X_name)
    labels = validation.labels(y, n=len(array), kind=kind, name=y_name)
    return Split(array, labels, np.array([f"{part}/{row}" for row in range(len(array))]))
