"""What a person should know about labelled data before trusting a model of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cilf.core.near_duplicates import count_near_duplicates, find_mixed, group_near_duplicates
from cilf.core.types import Array, Ints
from cilf.data import Dataset

FEW_INSTANCES, FEW_TESTED = 10, 5  # of a class
FEWEST_ROWS = 20  # whose numbers can look like those of rows
SPARSE = 3  # numbers of rows are not that much farther apart
MOST_NAMED = 3


@dataclass(frozen=True)
class DataReport:
    """Problems of labelled data.

    Attributes:
        n_near_duplicates: the number of instances beyond the first of each set of near-duplicates.
        n_across: the number of test instances with near-duplicates in the training split.
        problems: a sentence for each problem.
    """

    n_near_duplicates: int
    n_across: int
    problems: list[str]


def check_data(data: Dataset) -> DataReport:
    """Find near-duplicates, instances in two classes, small classes and row numbers."""
    group = group_near_duplicates(data.train.X, data.test.X)
    in_test = group[len(data.train) :]
    n_across = int(np.isin(in_test, group[: len(data.train)]).sum())
    n_copies = count_near_duplicates(group)
    problems = [
        *_describe_copies(data, n_copies, n_across),
        *_describe_mixed(data, group),
        *_describe_small_classes(data, in_test),
        *_describe_row_numbers(data),
    ]
    return DataReport(n_copies, n_across, problems)


def _describe_copies(data: Dataset, n_copies: int, n_across: int) -> Iterator[str]:
    if not n_copies:
        return
    found = f"{n_copies} of {len(data.train) + len(data.test)} instances are near-duplicates"
    if n_across:
        yield (
            f"{found}, and {n_across} of {len(data.test)} test instances have some in the "
            "training split: the accuracy is overestimated"
        )
    else:
        yield f"{found}: each is on one side of the split with the instances that it is like"


def _describe_mixed(data: Dataset, group: Ints) -> Iterator[str]:
    """Say which instances are in two classes."""
    y = np.concatenate([data.train.y, data.test.y])
    mixed = np.flatnonzero(find_mixed(group, y))
    if not len(mixed):
        return
    ids = np.concatenate([data.train.ids, data.test.ids])
    numbers, first = np.unique(group[mixed], return_index=True)
    examples = []
    for number in numbers[np.argsort(first)][:MOST_NAMED]:
        rows = mixed[group[mixed] == number]
        _, one_each = np.unique(y[rows], return_index=True)
        examples.append(" and ".join(f"{ids[row]} ({y[row]!s})" for row in rows[one_each][:2]))
    found = f"{_count(len(numbers), 'instance')} in more than one class"
    yield f"{found} ({_list(examples, len(numbers))}): correct the labels"


def _describe_small_classes(data: Dataset, in_test: Ints) -> Iterator[str]:
    every = np.concatenate([data.train.y, data.test.y])
    sizes = {label: int((every == label).sum()) for label in data.classes}
    small = [f"{label!r}: {n}" for label, n in sizes.items() if n < FEW_INSTANCES]
    if small:
        yield (
            f"{_count(len(small), 'class', 'classes')} with fewer than {FEW_INSTANCES} instances "
            f"({_list(small, len(small))}): add more"
        )
    scored = {label: len(np.unique(in_test[data.test.y == label])) for label in data.classes}
    unsure = [f"{label!r}: {n}" for label, n in scored.items() if n < FEW_TESTED]
    if unsure:
        yield (
            f"{_count(len(unsure), 'class', 'classes')} with a score on fewer than {FEW_TESTED} "
            f"different test instances ({_list(unsure, len(unsure))}): the score says little"
        )


def _describe_row_numbers(data: Dataset) -> Iterator[str]:
    if not data.columns or data.train.X.ndim != 2 or len(data.columns) != data.train.X.shape[1]:
        return
    values = np.concatenate([data.train.X, data.test.X])
    pairs = zip(data.columns, values.T, strict=True)
    found = [repr(name) for name, column in pairs if _numbers_rows(column)]
    if found:
        yield (
            f"{_count(len(found), 'column')} with another whole number in each row "
            f"({_list(found, len(found))}): if it is an id, remove it or call it 'id'"
        )


def _numbers_rows(column: Array) -> bool:
    """Whether the values are whole numbers, all different and close together."""
    n = len(column)
    if n < FEWEST_ROWS or not (column == np.round(column)).all():
        return False
    return len(np.unique(column)) == n and bool(np.ptp(column) < SPARSE * n)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _list(examples: Sequence[str], n: int) -> str:
    return ", ".join(examples[:MOST_NAMED]) + (", ..." if n > MOST_NAMED else "")
