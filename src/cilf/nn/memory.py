"""A bounded set of labelled instances, shared evenly among the classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cilf.core.near_duplicates import find_mixed
from cilf.core.types import Array, Bools, Ints
from cilf.nn.network import as_tensor

SAME = 1e-5  # difference of values that are still the same, relative and absolute


@dataclass(frozen=True)
class Memory:
    """Labelled instances; ``y`` holds class positions, not names."""

    X: Array  # (n, ...)
    y: Ints  # (n,)

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def empty(cls, like: Array) -> Memory:
        """An empty memory for instances of this shape and dtype."""
        return cls(like[:0].copy(), np.zeros(0, dtype=np.int64))

    def arrays(self, name: str) -> dict[str, Array]:
        """The memory as it is stored under this name."""
        return {f"{name}.X": self.X, f"{name}.y": self.y}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], name: str) -> Memory:
        """The memory that ``arrays`` stored under this name."""
        return cls(arrays[f"{name}.X"], arrays[f"{name}.y"])

    def tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Instances and labels as tensors on this device."""
        return as_tensor(self.X, device), torch.from_numpy(self.y).to(device)

    def combine(self, X: Array, y: Ints) -> Memory:
        """A memory of these instances and the given ones."""
        return Memory(np.concatenate([self.X, X]), np.concatenate([self.y, y]))

    def rows(self, rows: Ints) -> Memory:
        """A memory of these rows only."""
        return Memory(self.X[rows], self.y[rows])

    def reassign(self, positions: Ints) -> Memory:
        """The memory after classes got new positions; -1 removes the instances of a class.

        >>> memory = Memory(np.arange(3)[:, None], np.array([0, 1, 2]))
        >>> memory.reassign(np.array([0, -1, 1])).y.tolist()
        [0, 1]
        """
        y = positions[self.y]
        return Memory(self.X[y >= 0], y[y >= 0])

    def find(self, X: Array, y: Ints) -> list[int | None]:
        """The row that holds each of these labelled instances; None if there is none.

        Each row is found once. Vectors of a network may differ in the last digits.
        """
        left = np.ones(len(self), dtype=bool)
        rows: list[int | None] = []
        for instance, label in zip(X, y.tolist(), strict=True):
            own = np.flatnonzero(left & (self.y == label))
            same = np.isclose(self.X[own], instance, rtol=SAME, atol=SAME)
            found = own[same.all(axis=tuple(range(1, same.ndim)))]
            rows.append(int(found[0]) if len(found) else None)
            left[found[:1]] = False
        return rows

    def without(self, rows: Iterable[int]) -> Memory:
        """The memory without these rows."""
        return self.rows(np.setdiff1d(np.arange(len(self)), np.array(list(rows), dtype=np.int64)))

    def rebalance(self, size: int, rng: np.random.Generator) -> Memory:
        """At most ``size`` instances: each class keeps a random, even share of what it has."""
        classes = np.unique(self.y)
        quotas = even_quotas(size, len(classes))
        kept = []
        for label, quota in zip(classes, quotas, strict=True):
            members = np.flatnonzero(self.y == label)
            kept.append(members[rng.permutation(len(members))[:quota]])
        return self.rows(np.sort(np.concatenate(kept))) if kept else self


def even_quotas(size: int, n_classes: int) -> list[int]:
    """Share ``size`` evenly among the classes. The first classes take the remainder.

    >>> even_quotas(100, 3)
    [34, 33, 33]
    """
    return [size // n_classes + (i < size % n_classes) for i in range(n_classes)]


def set_aside(
    y: Ints,
    per_class: int,
    rng: np.random.Generator,
    there: Ints,
    group: Ints | None = None,
    is_seen: Bools | None = None,
) -> tuple[Ints, Ints]:
    """Rows to train on, and rows to keep out of training: up to ``per_class`` of each class.

    The labels in ``there`` are kept out already and count. At most a third of the new rows of a
    class is kept out. A class that has ``per_class`` rows gets no more: later queries show
    instances that seemed novel, which are no fair sample of a known class.

    Rows with one number in ``group`` are near-duplicates. The first of them may be kept out, and
    the others are neither kept out nor trained on then. Rows with ``is_seen`` have near-duplicates
    that were trained on. They are trained on, as are near-duplicates with different labels.

    >>> train, aside = set_aside(np.array([0] * 9 + [1] * 9), 2, np.random.default_rng(0),
    ...                          there=np.array([0, 0]))
    >>> len(train), len(aside), min(aside) >= 9
    (16, 2, np.True_)
    """
    group = np.arange(len(y)) if group is None else group
    is_bound = find_mixed(group, y)
    if is_seen is not None:
        is_bound |= np.isin(group, group[is_seen])
    kept_out = [np.zeros(0, dtype=np.int64)]
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        missing = max(0, per_class - int((there == label).sum()))
        kept_out.append(_choose_firsts(rows[~is_bound[rows]], group, missing, len(rows) // 3))
    aside = np.sort(np.concatenate(kept_out))
    return np.flatnonzero(~np.isin(group, group[aside])), aside


def _choose_firsts(rows: Ints, group: Ints, most: int, most_lost: int) -> Ints:
    """The first row of up to ``most`` groups that have up to ``most_lost`` rows together."""
    _, first, sizes = np.unique(group[rows], return_index=True, return_counts=True)
    chosen: list[int] = []
    for at in np.argsort(first):
        if len(chosen) < most and sizes[at] <= most_lost:
            chosen.append(int(rows[first[at]]))
            most_lost -= int(sizes[at])
    return np.array(chosen, dtype=np.int64)
