"""Tables as data: rows of numbers, texts, vectors, images or paths of images.

:mod:`cilf.data.table_files` finds out what columns hold. ``to_dataset`` and ``to_instances`` choose
among them (see :mod:`cilf.data.columns`) and read the rows.

Identities are the values of a column ``id``, ``index`` or ``row``, or the paths of images, if they
are unique. Otherwise they are ``name.csv:0``, ``name.csv:1``, ... in one file, and ``train/0``,
..., ``test/0``, ... in a training and a test table. Rows are counted from 0, without the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.cache import fingerprint
from cilf.core.near_duplicates import group_near_duplicates
from cilf.core.reading import is_readable
from cilf.core.types import Array, Bools
from cilf.data.columns import (
    Roles,
    Table,
    choose_roles,
    locate_image,
    read_row_names,
    require_same_columns,
)
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.images import EncodedImages, decode_dataset, decode_instances
from cilf.data.options import Options
from cilf.data.pixels import Encoded
from cilf.data.reader import Reader
from cilf.data.split import hold_out, parse_split
from cilf.data.values import (
    Bad,
    read_labels,
    read_numbers,
    read_texts,
    read_vectors,
    select_usable,
)
from cilf.errors import BadInput

MIN_ROWS_OF_IDS = 20  # a label column with more unique values than this looks like an id


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
        check=lambda path, options: choose_roles(read_table(path), options, labelled=True),
    )


def to_dataset(name: str, train: Table, test: Table | None, options: Options) -> Dataset:
    """Convert a labelled table to a data set; a share is held out if there is no test table."""
    roles = choose_roles(train, options, labelled=True)
    tables = [train] if test is None else [train, test]
    if test is not None:
        require_same_columns(train, test, roles)
    ids = make_identities(tables, roles)
    y, bad = read_labels(tables, str(roles.label))
    if roles.kind in ("image", "path"):
        keep = select_usable(tables, bad, options)
        in_test, is_drawn = _in_test(tables, roles, y, keep, options)
        images = _collect_images(tables, roles, ids, y, keep, in_test)
        images = replace(images, drawn_share=options.test_share if is_drawn else None)
        return replace(decode_dataset(name, images, options), columns=roles.content)
    options.refuse("size", where=f"{train.where}, which holds no images")
    X, unusable = _arrays(tables, roles)
    keep = select_usable(tables, unusable | bad, options)
    in_test, is_drawn = _in_test(tables, roles, y, keep, options)
    if is_drawn:
        group = group_near_duplicates(X[keep])
        where = tables[0].where
        in_test[keep] = hold_out(y[keep], options.test_share, where=where, group=group)
    train_rows, test_rows = keep & ~in_test, keep & in_test
    return Dataset(
        name,
        train=Split(X[train_rows], y[train_rows], ids[train_rows]),
        test=Split(X[test_rows], y[test_rows], ids[test_rows]),
        columns=roles.content,
    )


def to_instances(table: Table, options: Options) -> Instances:
    """Convert a table to instances; labels are ignored."""
    roles = choose_roles(table, options, labelled=False)
    ids = make_identities([table], roles)
    if roles.kind in ("image", "path"):
        everything = np.ones(len(ids), dtype=bool)
        images = _collect_images([table], roles, ids, None, everything, ~everything)
        return replace(decode_instances(images, options), columns=roles.content)
    options.refuse("size", where=f"{table.where}, which holds no images")
    X, bad = _arrays([table], roles)
    keep = select_usable([table], bad, options)
    return Instances(X[keep], ids[keep], roles.content)


def make_identities(tables: Sequence[Table], roles: Roles) -> Array:
    """Make the identity of each row of one table, or of a training and a test table."""
    column = roles.content[0] if roles.kind == "path" else None
    column = column if roles.identity is None else roles.identity
    own = [None if column is None else read_row_names(table, column) for table in tables]
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
        return read_texts(tables, roles.content[0])
    if roles.kind == "vector":
        return read_vectors(tables, roles.content[0])
    return read_numbers(tables, roles.content)


def _in_test(
    tables: Sequence[Table], roles: Roles, y: Array, keep: Bools, options: Options
) -> tuple[Bools, bool]:
    """Choose the held-out rows: a test table, those of a split column, or a share of a class.

    Returns whether a share was drawn, too.
    """
    where = tables[0].where
    in_test = np.arange(len(y)) >= tables[0].n_rows
    if len(tables) == 1 and roles.split is not None:
        parts = [parse_split(value) for value in tables[0].values(roles.split)]
        in_test = np.array([part == "test" for part in parts])
    _check_classes(y[keep & ~in_test], where, roles)
    if not in_test[keep].any():
        if len(tables) > 1:
            raise BadInput(f"{tables[1].where}: no row can be used: give some to test with.")
        in_test[keep] = hold_out(y[keep], options.test_share, where=where)
        return in_test, True
    return in_test, False


def _check_classes(y: Array, where: str, roles: Roles) -> None:
    n_classes = len(np.unique(y))
    if n_classes < 2:
        raise BadInput(
            f"{where}: label column {roles.label!r} names {n_classes} class in {len(y)} training "
            "rows: at least two are needed."
        )
    if n_classes == len(y) > MIN_ROWS_OF_IDS:
        raise BadInput(
            f"{where}: no two rows have the same {roles.label!r}, so it looks like an id: name the "
            "label column with label=... (--label on the command line)."
        )


def _collect_images(
    tables: Sequence[Table],
    roles: Roles,
    ids: Array,
    y: Array | None,
    keep: Bools,
    in_test: Bools,
) -> EncodedImages:
    column = roles.content[0]

    def source() -> Iterator[tuple[str, Encoded]]:
        images = chain.from_iterable(read_images(table, column) for table in tables)
        for identity, image, kept in zip(ids.tolist(), images, keep, strict=True):
            if kept:
                yield identity, image

    files = _fingerprint(tables, column) if roles.kind == "path" else None
    key = {"tables": [dict(t.key) for t in tables], "column": column, "files": files}
    labels_kept = None if y is None else y[keep]
    return EncodedImages(tables[0].where, source, ids[keep], labels_kept, in_test[keep], key)


def read_images(table: Table, column: str) -> Iterator[Encoded]:
    for batch in table.batches([column]):
        for value in batch.column(0):
            yield _image(table, value.as_py())


def _image(table: Table, value: Any) -> Encoded:
    """Get the image of a row: its bytes, its path, or a struct of both, as the hub stores it."""
    if isinstance(value, dict):
        value = value["path"] if value["bytes"] is None else value["bytes"]
    if isinstance(value, str):
        return locate_image(table, value)
    return value or b""  # no decoder reads it, so it counts as unreadable


def _fingerprint(tables: Sequence[Table], column: str) -> str:
    written = ((table, value) for table in tables for value in table.values(column) if value)
    paths = (locate_image(table, value) for table, value in written)
    return fingerprint(path for path in paths if is_readable(path))
