"""A data set: a training split that makes the stream, a test split that is the hold-out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cilf.core import Label, validation
from cilf.core.types import Array
from cilf.errors import BadInput

MOST_HASHED = 2000  # instances of a split that tell data apart


@dataclass(frozen=True)
class Split:
    """Instances, labels and the identity of each instance (a path, or a row)."""

    X: Array  # (n, ...)
    y: Array  # (n,)
    ids: Array  # (n,)

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[Array]:
        """Instances, then labels, so that ``learner.fit(*data.train)`` reads as it should."""
        return iter((self.X, self.y))


@dataclass(frozen=True)
class Instances:
    """Unlabelled instances and the identity of each (a path, or a row)."""

    X: Array  # (n, ...)
    ids: Array  # (n,)
    columns: tuple[str, ...] = ()  # of the table that X comes from, in order

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Dataset:
    """Labelled data with a name; every class has to be in the training split.

    Attributes:
        name: what it was loaded as.
        train: makes the stream.
        test: is the hold-out.
        n_drawn: how many of its classes a stream takes, chosen by the stream's seed; all if None.
        original_rows: training and test rows of the original, if this is known to be a part of it.
        columns: of the table that instances come from, in order; none if they come from no table.

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
        """Every class, sorted."""
        classes: list[Label] = np.unique(self.train.y).tolist()
        return classes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one instance."""
        return self.train.X.shape[1:]

    def describe(self) -> dict[str, Any]:
        """What records say about it."""
        rows = {"train_rows": len(self.train), "test_rows": len(self.test)}
        about = {"n_classes": self.n_drawn or len(self.classes), "instance_shape": list(self.shape)}
        part = self.original_rows and list(self.original_rows)
        return rows | about | {"part_of_rows": part, "digest": self.digest()}

    def digest(self) -> str:
        """A short hash of all labels and identities and of up to 2,000 instances a split.

        It tells other data from the same ones loaded again; it is no proof that two large sets
        are equal.
        """
        hashed = hashlib.blake2b(digest_size=8)
        for split in (self.train, self.test):
            rows = np.unique(np.linspace(0, len(split) - 1, MOST_HASHED).astype(int))
            for array in (split.y, split.ids, split.X[rows]):
                hashed.update(f"{array.dtype.kind}{array.shape}".encode())
                hashed.update(_bytes(array))
        return hashed.hexdigest()

    @classmethod
    def from_arrays(
        cls, name: str, X_train: object, y_train: object, X_test: object, y_test: object
    ) -> Dataset:
        """A data set from arrays; identities are ``train/0``, ``train/1``, ..., ``test/0``, ..."""
        train = _split("train", X_train, y_train)
        test = _split("test", X_test, y_test, train.X.shape[1:], train.y.dtype.kind)
        return cls(name, train, test)


def _bytes(array: Array) -> bytes:
    if array.dtype.kind in "OUT":  # strings, each with its length
        return "".join(f"{len(text)}:{text}" for text in array.tolist()).encode(errors="replace")
    return np.ascontiguousarray(array).tobytes()


def _split(
    part: str, X: object, y: object, shape: tuple[int, ...] | None = None, kind: str | None = None
) -> Split:
    X_name, y_name = f"X_{part}", f"y_{part}"
    array = validation.instances(X, shape=shape, name=X_name)
    labels = validation.labels(y, n=len(array), kind=kind, name=y_name)
    return Split(array, labels, np.array([f"{part}/{row}" for row in range(len(array))]))
