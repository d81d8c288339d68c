"""Data as pieces that any process reads by itself, so that no process reads them all.

A folder of images is divided into files, a parquet table into rows of its row groups. The other
formats are one file that is read from its beginning, so they have no pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from cilf.core.types import Array, Bools
from cilf.data import pixels
from cilf.data.columns import Roles, Table, choose_roles
from cilf.data.folders import find_flat
from cilf.data.images import Encoded, Faults, settle_faults
from cilf.data.options import Options
from cilf.data.pixels import Form, Unreadable
from cilf.data.table_files import ParquetRows, open_parquet
from cilf.data.tables import make_identities, read_images
from cilf.data.values import (
    Bad,
    find_vector_length,
    read_numbers,
    read_texts,
    read_vectors,
    select_usable,
)
from cilf.errors import BadInput

PIECE = 1024  # instances of a piece, about
MOST_PIECES = 16  # of a row group: each piece reads it from its beginning

Read = Callable[[], tuple[Array, Bad]]  # the instances of a piece, and what is wrong with some
Settle = Callable[[Bad], Bools]


@dataclass(frozen=True)
class Pieces:
    """Data as pieces.

    Attributes:
        ids: the identity of each instance.
        columns: the columns of the table that instances come from; none if it is no table.
        sizes: the number of instances of each piece, in order.
        reads: a function for each piece that reads it. It works in any process.
        settle: a function that gets what is wrong with instances, and selects those to keep; data
            with faults are refused unless they may be skipped.
    """

    ids: Array  # (n,)
    columns: tuple[str, ...]
    sizes: Sequence[int]
    reads: Sequence[Read]
    settle: Settle


def divide_folder(path: Path, options: Options) -> Pieces:
    """Divide the image files of a flat folder, whose labels are not known."""
    assert isinstance(options.size, tuple)  # that of a model
    names, form = find_flat(path), Form.of_shape(options.size)
    files, ids = [path.absolute() / name for name in names], [name.as_posix() for name in names]
    starts = range(0, len(files), PIECE)
    parts = [list(files[start : start + PIECE]) for start in starts]
    return Pieces(
        ids=np.array(ids),
        columns=(),
        sizes=[len(part) for part in parts],
        reads=[partial(_read_pixels, part, form) for part in parts],
        settle=partial(settle_faults, str(path), np.array(ids), options.skip_bad),
    )


def divide_table(table: Table, options: Options) -> Pieces:
    """Divide a table of parquet files; labels are ignored."""
    roles = choose_roles(table, options, labelled=False)
    ids = make_identities([table], roles)
    parts = [part for file in table.files for part in _divide_file(file)]
    if roles.kind in ("image", "path"):
        assert isinstance(options.size, tuple)  # that of a model
        form = Form.of_shape(options.size)
        reads: list[Read] = [
            partial(_read_pixels_of, part, roles.content[0], table.root, form) for part in parts
        ]
        settle: Settle = partial(settle_faults, table.where, ids, options.skip_bad)
    else:
        options.refuse("size", where=f"{table.where}, which holds no images")
        length = find_vector_length([table], roles.content[0]) if roles.kind == "vector" else None
        reads = [partial(_read_values, part, roles, length) for part in parts]
        settle = partial(select_usable, [table], options=options)
    return Pieces(ids, roles.content, [part.n_rows for part in parts], reads, settle)


def _divide_file(path: Path) -> Iterator[ParquetRows]:
    with open_parquet(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    for group, size in enumerate(sizes):
        step = max(PIECE, -(-size // MOST_PIECES))
        for start in range(0, size, step):
            yield ParquetRows(path, group, start, min(start + step, size))


# ----------------------------------------------------------------- in any process


def _read_values(part: ParquetRows, roles: Roles, length: int | None) -> tuple[Array, Bad]:
    """The values of a piece. Of one that cannot be read, each row has a fault."""
    try:
        return _read_sound_values(part, roles, length)
    except BadInput as error:
        return _fill(part.n_rows, roles, length), dict.fromkeys(range(part.n_rows), str(error))


def _fill(n_rows: int, roles: Roles, length: int | None) -> Array:
    if roles.kind == "text":
        return np.full(n_rows, "", dtype=object)
    width = len(roles.content) if length is None else length
    return np.zeros((n_rows, width), dtype=np.float32)


def _read_sound_values(part: ParquetRows, roles: Roles, length: int | None) -> tuple[Array, Bad]:
    table = part.open()
    if roles.kind == "text":
        return read_texts([table], roles.content[0])
    if roles.kind == "vector":
        return read_vectors([table], roles.content[0], length)
    return read_numbers([table], roles.content)


def _read_pixels_of(
    part: ParquetRows, column: str, root: Path | None, form: Form
) -> tuple[Array, Bad]:
    try:
        return _read_pixels(list(read_images(part.open(root), column)), form)
    except BadInput as error:
        X = np.zeros((part.n_rows, *form.shape), dtype=np.uint8)
        return X, dict.fromkeys(range(part.n_rows), str(error))


def _read_pixels(images: Sequence[Encoded], form: Form) -> tuple[Array, Faults]:
    """The pixels of images in one form, black for those that cannot be read, and their faults."""
    X, faults = np.zeros((len(images), *form.shape), dtype=np.uint8), {}
    with pixels.refuse_bombs():
        for row, image in enumerate(images):
            result = pixels.read_pixels(image, form)
            if isinstance(result, Unreadable):
                faults[row] = result.reason
            else:
                X[row] = result
    return X, faults
