"""The interface of a format of data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cilf.data.columns import Table
from cilf.data.dataset import Dataset, Instances
from cilf.data.options import Options

if TYPE_CHECKING:
    from cilf.data.pieces import Pieces  # which reads tables


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A format of data.

    Attributes:
        about: the content of such data, for listings and messages.
        suffixes: the suffixes of such files, in lower case; none for a folder.
        options: the names of the options that the format takes, among ``label``, ``column``,
            ``columns`` and ``size``.
        read_dataset: reads labelled data under a path, which messages call by a name.
        read_instances: reads unlabelled data under a path.
        read_table: reads a file as a table; None if the format holds no table.
        divide: divides unlabelled data into pieces that any process can read; None if one process
            has to read them from the beginning.
        check: refuses labelled data for what is wrong on the surface, such as a missing column,
            before any instance is read; None if nothing can be said.
    """

    about: str
    suffixes: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    read_dataset: Callable[[Path, str, Options], Dataset]
    read_instances: Callable[[Path, Options], Instances]
    read_table: Callable[[Path], Table] | None = None
    divide: Callable[[Path, Options], Pieces] | None = None
    check: Callable[[Path, Options], object] | None = None
