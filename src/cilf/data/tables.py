"""Tables of labelled rows: numbers, texts, vectors, images or paths of images.

:mod:`cilf.data.table_files` finds out what columns hold. ``to_dataset`` and ``to_instances`` choose
among them (see :mod:`cilf.data.columns`) and read the rows.

Identities are the values of a column ``id``, ``index`` or ``row``, or the paths of images, where
each row has another one. Else they are ``name.csv:0``, ``name.csv:1``, ... in one file, and
``train/0``, ..., ``test/0``, ... where training and test rows come from two tables. Rows are
counted from 0, without the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.cache import fingerprint
from cilf.core.types import Array, Bools
from cilf.data.columns import (
    Roles,
    Table,
    choose,
    image_path,
    part_of,
    row_names,
    same_columns,
)
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.images import Pictures, decoded_dataset, decoded_instances
from cilf.data.options import Options
from cilf.data.pixels import Encoded
from cilf.data.reader import Reader
from cilf.data.split import held_out
from cilf.data.values import Bad, labels, numbers, texts, usable, vectors
from cilf.errors import BadInput

LOOKS_LIKE_AN_ID = 20  # more rows than this, and no two of one class


def table_reader(about: str, read_table: Callable[[Path], Table], *suffixes: str) -> Reader:
    """A format whose files hold tables.

    Args:
        about: the content of such files.
        read_table: reads a file as a table.
        suffixes: the suffixes of such files, in lower case.
    """
    return Reader(
        about=about,
        suffixes=suffixes,
        options=frozenset({"label", "column", "columns", "size"}),
        read_dataset=lambda path, name, options: to_dataset(name, read_table(path), None, options),
        read_instances=lambda path, options: to_instances(read_table(path), options),
        read_table=read_table,
    )


def to_dataset(name: str, train: Table, test: Table | None, options: Options) -> Dataset:
    """The labelled rows of a table; without a test table, a part of them is held out."""
    roles = choose(train, options, labelled=True)
    tables = [train] if test is None else [train, test]
    if test is not None:
        same_columns(train, test, roles)
    ids = identities(tables, roles)
    y, bad = labels(tables, str(roles.label))
    if roles.kind in ("image", "path"):
        keep = usable(train.where, ids, bad, options)
        in_test = _in_test(tables, roles, y, keep, options)
        pictures = _pictures(tables, roles, ids, y, keep, in_test)
        return replace(decoded_dataset(name, pictures, options), columns=roles.content)
    options.refuse("size", where=f"{train.where}, which holds no images")
    X, unusable = _arrays(tables, roles)
    keep = usable(train.where, ids, unusable | bad, options)
    in_test = _in_test(tables, roles, y, keep, options)
    train_rows, test_rows = keep & ~in_test, keep & in_test
    return Dataset(
        name,
        train=Split(X[train_rows], y[train_rows], ids[train_rows]),
        test=Split(X[test_rows], y[test_rows], ids[test_rows]),
        columns=roles.content,
    )


def to_instances(table: Table, options: Options) -> Instances:
    """The rows of a table without their labels, if it has any."""
    roles = choose(table, options, labelled=False)
    ids = identities([table], roles)
    if roles.kind in ("image", "path"):
        everything = np.ones(len(ids), dtype=bool)
        pictures = _pictures([table], roles, ids, None, everything, ~everything)
        return replace(decoded_instances(pictures, options), columns=roles.content)
    options.refuse("size", where=f"{table.where}, which holds no images")
    X, bad = _arrays([table], roles)
    keep = usable(table.where, ids, bad, options)
    return Instances(X[keep], ids[keep], roles.content)


def identities(tables: Sequence[Table], roles: Roles) -> Array:
    """The identity of each row of one table, or of a training and a test table."""
    column = roles.content[0] if roles.kind == "path" else None
    column = column if roles.identity is None else roles.identity
    own = [None if column is None else row_names(table, column) for table in tables]
    joined = list(chain.from_iterable(names or () for names in own))
    if all(own) and len(set(joined)) == len(joined):
        return np.array(joined)
    alone = len(tables) == 1
    starts = [f"{Path(tables[0].where).name}:"] if alone else ["train/", "test/"]
    return np.array(
        [
            start + str(row)
            for start, names, table in zip(starts, own, tables, strict=True)
            for row in names or range(table.n_rows)
        ]
    )


def _arrays(tables: Sequence[Table], roles: Roles) -> tuple[Array, Bad]:
    if roles.kind == "text":
        return texts(tables, roles.content[0])
    if roles.kind == "vector":
        return vectors(tables, roles.content[0])
    return numbers(tables, roles.content)


def _in_test(
    tables: Sequence[Table], roles: Roles, y: Array, keep: Bools, options: Options
) -> Bools:
    """Which rows are held out: a table's, those a column names, or a share of each class."""
    where = tables[0].where
    in_test = np.arange(len(y)) >= tables[0].n_rows
    if len(tables) == 1 and roles.split is not None:
        parts = [part_of(value) for value in tables[0].values(roles.split)]
        in_test = np.array([part == "test" for part in parts])
    _check_classes(y[keep & ~in_test], where, roles)
    if not in_test[keep].any():
        if len(tables) > 1:
            raise BadInput(f"{tables[1].where}: no row can be used: give some to test with.")
        in_test[keep] = held_out(y[keep], options.test_share, where=where)
    return in_test


def _check_classes(y: Array, where: str, roles: Roles) -> None:
    n_classes = len(np.unique(y))
    if n_classes < 2:
        raise BadInput(
            f"{where}: label column {roles.label!r} names {n_classes} class in {len(y)} training "
            "rows: at least two are needed."
        )
    if n_classes == len(y) > LOOKS_LIKE_AN_ID:
        raise BadInput(
            f"{where}: no two rows have the same {roles.label!r}, so it looks like an id: name the "
            "label column with label=... (--label on the command line)."
        )


def _pictures(
    tables: Sequence[Table],
    roles: Roles,
    ids: Array,
    y: Array | None,
    keep: Bools,
    in_test: Bools,
) -> Pictures:
    column = roles.content[0]

    def source() -> Iterator[tuple[str, Encoded]]:
        images = chain.from_iterable(_encoded(table, column) for table in tables)
        for identity, image, kept in zip(ids.tolist(), images, keep, strict=True):
            if kept:
                yield identity, image

    files = _fingerprint(tables, column) if roles.kind == "path" else None
    key = {"tables": [dict(t.key) for t in tables], "column": column, "files": files}
    labels_kept = None if y is None else y[keep]
    return Pictures(tables[0].where, source, ids[keep], labels_kept, in_test[keep], key)


def _encoded(table: Table, column: str) -> Iterator[Encoded]:
    for batch in table.batches([column]):
        for value in batch.column(0):
            yield _image(table, value.as_py())


def _image(table: Table, value: Any) -> Encoded:
    """An image as a row holds it: its bytes, its path, or the hub's struct of both."""
    if isinstance(value, dict):
        value = value["path"] if value["bytes"] is None else value["bytes"]
    if isinstance(value, str):
        return image_path(table, value)
    return value or b""  # which no decoder reads: it counts as unreadable


def _fingerprint(tables: Sequence[Table], column: str) -> str:
    written = ((table, value) for table in tables for value in table.values(column) if value)
    paths = (image_path(table, value) for table, value in written)
    return fingerprint(path for path in paths if path.is_file())
