"""Where instances are read, embedded and assigned: in this process, or on a Ray cluster.

``ROW_ENGINES`` is their one table. An engine reads instances, and gives a learner their rows. What
a learner does with rows is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from cilf.core import validation
from cilf.core.processes import n_cores
from cilf.core.ray_cluster import (
    connect,
    import_ray,
    list_nodes,
    report_lost_nodes,
    require_address,
    silence,
)
from cilf.core.rows import Rows, load_rows
from cilf.core.types import Array, Bools
from cilf.data import Instances
from cilf.data.images import decoding_by
from cilf.data.options import Options
from cilf.data.paths import divide_instances, read_instances
from cilf.errors import BadConfig

LOCAL, RAY = "local", "ray"
PURPOSE = "the engine 'ray'"


@dataclass(frozen=True)
class RemoteInstances:
    """Unlabelled instances on a cluster, and their identities."""

    X: Rows  # (n, ...)
    ids: Array  # (n,)
    columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


AnyInstances = Instances | RemoteInstances


class RowEngine(Protocol):
    """Reads instances, and spreads arrays."""

    def read(self, path: Path, options: Options) -> AnyInstances:
        """Read unlabelled instances."""

    def distribute(self, X: Array) -> Array | Rows:
        """Put instances of this process where a frozen network is to see them."""

    def decoding(self) -> AbstractContextManager[None]:
        """Decode images there, inside the block. Their pixels come to this process."""


class LocalRows:
    """Everything in this process."""

    def read(self, path: Path, options: Options) -> Instances:
        return read_instances(path, options)

    def distribute(self, X: Array) -> Array:
        return X

    def decoding(self) -> AbstractContextManager[None]:
        return nullcontext()


class ClusterRows:
    """Instances are read and kept on the nodes of a Ray cluster."""

    def __init__(self, ray: Any, n_workers: int | None) -> None:
        from cilf.data.ray_rows import Tasks

        self._tasks = Tasks(ray, n_workers)

    def read(self, path: Path, options: Options) -> AnyInstances:
        pieces = divide_instances(path, options)
        if pieces is None:
            read = LocalRows().read(path, options)
            return RemoteInstances(self._tasks.distribute(read.X), read.ids, read.columns)
        rows, ids = self._tasks.read(pieces)
        return RemoteInstances(rows, ids, pieces.columns)

    def distribute(self, X: Array) -> Rows:
        return self._tasks.distribute(X)

    def decoding(self) -> AbstractContextManager[None]:
        return decoding_by(self._tasks.map_items)


@dataclass(frozen=True)
class EngineChoice:
    """The engine that a user chose.

    Attributes:
        name: a name of the table ``ROW_ENGINES``.
        address: the address of a Ray cluster; None starts one on this machine.
        workers: the largest number of blocks at once; None is as many as there is room for.

    >>> EngineChoice("local", address="auto")
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: address is for engine ray, not local: leave it out.
    """

    name: str = LOCAL
    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        validation.one_of("engine", self.name, ROW_ENGINES)
        if self.workers is not None:
            validation.whole_number("workers", self.workers, least=1)
        if self.name != RAY:
            for option in ("address", "workers"):
                if getattr(self, option) is not None:
                    raise BadConfig(f"{option} is for engine {RAY}, not {self.name}: leave it out.")
            return
        require_address(self.address)
        import_ray(self.address, PURPOSE)

    def open(self) -> AbstractContextManager[RowEngine]:
        """The engine, inside a block."""
        return ROW_ENGINES[self.name](self)


@contextmanager
def _stay_here(_: EngineChoice) -> Iterator[RowEngine]:
    yield LocalRows()


@contextmanager
def _join_cluster(choice: EngineChoice) -> Iterator[RowEngine]:
    n_cpus = choice.workers or n_cores()
    with silence(), connect(choice.address, n_cpus, PURPOSE) as ray:
        nodes = list_nodes(ray)
        yield ClusterRows(ray, choice.workers)
        report_lost_nodes(ray, nodes)


ROW_ENGINES: dict[str, Callable[[EngineChoice], AbstractContextManager[RowEngine]]] = {
    LOCAL: _stay_here,
    RAY: _join_cluster,
}
HERE = EngineChoice()


def select_instances(instances: AnyInstances, keep: Bools) -> AnyInstances:
    """Some of the instances, wherever they are."""
    ids, columns = instances.ids[keep], instances.columns
    if isinstance(instances, RemoteInstances):
        return RemoteInstances(instances.X.select(np.flatnonzero(keep)), ids, columns)
    return Instances(instances.X[keep], ids, columns)


@contextmanager
def bring_here(instances: AnyInstances, beside: Path) -> Iterator[Instances]:
    """The instances on this machine, inside the block.

    Numbers and pixels are in a file, beside the folder that is to be written: they need not fit
    into memory.
    """
    if isinstance(instances, Instances):
        yield instances
        return
    rows, about = instances.X, (instances.ids, instances.columns)
    if rows.ndim == 1:
        yield Instances(load_rows(rows), *about)
        return
    with TemporaryDirectory(prefix=".rows-", dir=beside) as folder:
        yield Instances(_write_rows(rows, Path(folder) / "X.npy"), *about)


def _write_rows(rows: Rows, path: Path) -> Array:
    file: Any = None
    for place, (block,) in rows.blocks(lambda block: (block,)):
        if file is None:
            file = np.lib.format.open_memmap(path, "w+", block.dtype, rows.shape)
        file[place] = block
    return file  # type: ignore[no-any-return]
