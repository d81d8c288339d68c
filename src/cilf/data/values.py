"""The columns of a table as arrays, and the rows that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from cilf.core import validation
from cilf.core.notices import warn_once
from cilf.core.types import Array, Bools, Floats, Label
from cilf.data.columns import Feature, Table, arrow, read_as_written, to_label
from cilf.data.options import Options
from cilf.errors import BadInput

Bad = dict[int, str]  # row -> its problem


def read_labels(tables: Sequence[Table], column: str) -> tuple[Array, Bad]:
    """Read the labels of all tables; the labels of bad rows are fillers."""
    values = list(chain.from_iterable(_read_labels(table, column) for table in tables))
    bad = {row: f"{column!r} is missing" for row, value in enumerate(values) if value is None}
    present = {type(value) for value in values if value is not None}
    if present == {int, str}:  # ints in one table and strings in the other
        values = [value if value is None else str(value) for value in values]
    filler: Label = "none" if str in present else 0  # for rows that are refused or left out
    filled = [filler if value is None else value for value in values]
    name = f"{tables[0].where}: label column {column!r}"
    return validation.labels(filled, n=len(filled), name=name), bad


def _read_labels(table: Table, column: str) -> list[Label | None]:
    feature = table.features[column]
    if feature.kind in ("image", "vector", "other"):
        raise BadInput(
            f"{table.where}: column {column!r} holds no labels (ints or strings): name another one "
            "with label=... (--label on the command line)."
        )
    plain = [to_label(value) for value in read_as_written(table, column)]
    for row, value in enumerate(plain):
        if isinstance(value, float):
            place = table.places([row])[0]
            raise BadInput(
                f"{table.where}: column {column!r} holds {value} ({place}), which is no class: "
                "name the label column with label=... (--label on the command line)."
            )
    if feature.kind == "label":
        names = _class_names(feature)
        return [_name_label(value, names, table.where) for value in plain]  # type: ignore[arg-type]
    return plain  # type: ignore[return-value]


def _class_names(feature: Feature) -> Sequence[Label]:
    if all(map(_is_number, feature.names)):
        return [int(name) for name in feature.names]
    return feature.names


def _name_label(value: Label | None, names: Sequence[Label], where: str) -> Label | None:
    if not isinstance(value, int):
        return value
    if value < 0:  # rows without a label, on the hub
        return None
    if names and value >= len(names):
        raise BadInput(
            f"{where} holds the label {value}, but names {len(names)} classes only: correct it."
        )
    return names[value] if names else value


def _is_number(name: str) -> bool:
    return name.isdecimal() and str(int(name)) == name


def read_numbers(tables: Sequence[Table], columns: Sequence[str]) -> tuple[Floats, Bad]:
    """Read columns of numbers, (n, d); a row with a value that float32 cannot hold is bad."""
    X = np.empty((sum(table.n_rows for table in tables), len(columns)), dtype=np.float32)
    bad: Bad = {}
    names = [f"column {column!r}" for column in columns]
    for start, batch in _iterate_batches(tables, columns):
        values = np.stack([_to_doubles(values) for values in batch.columns], axis=1)
        rows = start + np.arange(len(values))
        X[rows] = _to_singles(values)
        _note_bad(bad, rows, values, names)
    return X, bad


def read_vectors(
    tables: Sequence[Table], column: str, length: int | None = None
) -> tuple[Floats, Bad]:
    """Read a column of lists, (n, d); a list of another ``length`` is bad.

    If it is None, it is the length of the first list.
    """
    compute = arrow("pyarrow.compute")
    length = find_vector_length(tables, column) if length is None else length
    X = np.zeros((sum(table.n_rows for table in tables), length), dtype=np.float32)
    bad: Bad = {}
    for start, batch in _iterate_batches(tables, [column]):
        lists = batch.column(0)
        lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
        fits = lengths == length
        rows = start + np.flatnonzero(fits)
        flat = _to_doubles(lists.filter(arrow("pyarrow").array(fits)).flatten())
        values = flat.reshape(len(rows), length)
        X[rows] = _to_singles(values)
        for row in np.flatnonzero(~fits).tolist():
            bad[start + row] = f"column {column!r} holds {lengths[row]} numbers, not {length}"
        _note_bad(bad, rows, values, [f"column {column!r}"] * length)
    return X, bad


def find_vector_length(tables: Sequence[Table], column: str) -> int:
    """The length of the first list of a column that is not empty."""
    values = chain.from_iterable(table.values(column) for table in tables)
    first = next((len(value) for value in values if value), None)
    if first is None:
        raise BadInput(f"{tables[0].where}: column {column!r} holds empty lists only: fill it.")
    return first


def _to_doubles(array: Any) -> Array:
    """Convert an arrow array to float64; missing numbers are NaN."""
    pyarrow = arrow()
    if pyarrow.types.is_boolean(array.type):
        array = array.cast(pyarrow.int8())
    doubles = array.cast(pyarrow.float64(), safe=False)
    return np.asarray(doubles.to_numpy(zero_copy_only=False), dtype=np.float64)


def _to_singles(values: Array) -> Floats:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _note_bad(bad: Bad, rows: Array, values: Array, names: Sequence[str]) -> None:
    """Note the rows with a missing or too large value; ``names`` are those of the columns."""
    for place, column in np.argwhere(~np.isfinite(_to_singles(values))).tolist():
        value = values[place, column]
        problem = "missing" if np.isnan(value) else f"{value:g}, which float32 cannot hold"
        bad.setdefault(int(rows[place]), f"{names[column]} is {problem}")


def read_texts(tables: Sequence[Table], column: str) -> tuple[Array, Bad]:
    """Read a column of texts, (n,) str objects; a row without a text is bad."""
    values = chain.from_iterable(table.values(column) for table in tables)
    X = np.array([value or "" for value in values], dtype=object)
    empty = [row for row, text in enumerate(X) if not text.strip()]
    return X, dict.fromkeys(empty, f"column {column!r} holds no text")


def select_usable(tables: Sequence[Table], bad: Mapping[int, str], options: Options) -> Bools:
    """Select all rows but the bad ones; bad rows are refused unless they may be skipped."""
    keep = np.ones(sum(table.n_rows for table in tables), dtype=bool)
    if not bad:
        return keep
    rows, where = sorted(bad), tables[0].where
    count = f"{where}: {len(rows)} of {len(keep)} rows"
    if not options.skip_bad:
        raise BadInput(
            f"{count} cannot be used: {_list(rows[:3], tables, bad)}: fill or remove them, or skip "
            "them (--skip-bad, skip_bad=True)."
        )
    keep[rows] = False
    if not keep.any():
        raise BadInput(f"{where}: no row can be used: {_list(rows[:3], tables, bad)}.")
    warn_once(f"{count} are skipped: {_list(rows[:10], tables, bad)}.")
    return keep


def _list(rows: Sequence[int], tables: Sequence[Table], bad: Mapping[int, str]) -> str:
    more = ", ..." if len(rows) < len(bad) else ""
    return ", ".join(_describe_bad(rows, tables, bad)) + more


def _describe_bad(
    rows: Sequence[int], tables: Sequence[Table], bad: Mapping[int, str]
) -> Iterator[str]:
    """The place of each row and its problem; a place in a second table names the table."""
    start = 0
    for number, table in enumerate(tables):
        own = [row for row in rows if start <= row < start + table.n_rows]
        of_table = f" of {table.where}" if number else ""
        places = table.places([row - start for row in own]) if own else []
        for row, place in zip(own, places, strict=True):
            yield f"{place}{of_table} ({bad[row]})"
        start += table.n_rows


def _iterate_batches(tables: Sequence[Table], columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    start = 0
    for table in tables:
        for batch in table.batches(columns):
            yield start, batch
            start += batch.num_rows
