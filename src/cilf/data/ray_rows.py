"""Rows in the blocks of a Ray Data set, which the nodes of a cluster hold.

Every row has its number beside it, so that blocks may come back in any order. A block that is lost
with its node is made again from its piece, as Ray Data's tasks are.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core import rows as core_rows
from cilf.core.ray_cluster import cilf_variables
from cilf.core.rows import Place, Rows, Work
from cilf.core.types import Array, Ints
from cilf.data.pieces import PIECE, Pieces
from cilf.data.pixels import refuse_bombs
from cilf.data.values import Bad
from cilf.errors import BadInput, CilfError

ROW, VALUE, FAULT = "row", "x", "fault"  # columns of a Ray Data set
ITEMS = 128  # that a task gets
RESULT = "result-{}"  # columns of what a function returned

Batch = dict[str, Any]  # columns of rows


class RayRows(Rows):
    """Rows that a cluster holds.

    Args:
        tasks: what runs functions on the cluster.
        blocks: the Ray Data set, with the columns of the number of a row, and of the row.
        numbers: the numbers of the rows, ascending; rows with other numbers are left out.
        shape: the shape of all rows, (n, ...).
    """

    def __init__(self, tasks: Tasks, blocks: Any, numbers: Ints, shape: tuple[int, ...]) -> None:
        self._tasks, self._blocks, self._numbers = tasks, blocks, numbers
        self.shape = shape
        self._made: dict[Callable[[Array], Array], RayRows] = {}

    def blocks(self, work: Work) -> Iterator[tuple[Place, tuple[Array, ...]]]:
        """Yield what ``work`` returns for each block, and the place of the block."""

        def compute(batch: Batch) -> Batch:
            results = _in_blocks(work, _to_array(batch[VALUE]))
            named = {RESULT.format(i): part for i, part in enumerate(results)}
            return {ROW: batch[ROW], **named}

        for batch in self._tasks.fetch(self._tasks.map(self._blocks, compute)):
            parts = tuple(_to_array(batch[RESULT.format(i)]) for i in range(len(batch) - 1))
            number = np.atleast_1d(batch[ROW])
            place = np.searchsorted(self._numbers, number)
            found = self._numbers[np.minimum(place, len(self._numbers) - 1)] == number
            yield place[found], tuple(part[found] for part in parts)

    def transform(self, work: Callable[[Array], Array]) -> RayRows:
        """What ``work`` makes of each row, kept on the cluster. It is made once."""
        if work not in self._made:

            def compute(batch: Batch) -> Batch:
                (made,) = _in_blocks(lambda block: (work(block),), _to_array(batch[VALUE]))
                return {ROW: batch[ROW], VALUE: made}

            blocks = self._tasks.keep(self._tasks.map(self._blocks, compute))
            shape = (len(self), *self._tasks.measure(blocks))
            self._made[work] = RayRows(self._tasks, blocks, self._numbers, shape)
        return self._made[work]

    def select(self, rows: Ints) -> RayRows:
        """Some of the rows, in ascending order."""
        return RayRows(self._tasks, self._blocks, self._numbers[rows], (len(rows), *self.shape[1:]))

    def take(self, rows: Ints) -> Array:
        """Some of the rows, in the given order, as an array in this process."""
        wanted, place = np.unique(self._numbers[rows], return_inverse=True)

        def choose(batch: Batch) -> Batch:
            chosen = np.isin(batch[ROW], wanted)
            return {ROW: batch[ROW][chosen], VALUE: batch[VALUE][chosen]}

        array: Array | None = None
        for batch in self._tasks.fetch(self._tasks.map(self._blocks, choose)):
            values = _to_array(batch[VALUE])
            if len(values) and array is None:
                array = np.empty((len(wanted), *values.shape[1:]), values.dtype)
            if array is not None:
                array[np.searchsorted(wanted, batch[ROW])] = values
        assert array is not None  # the rows exist
        return array[place]


class Tasks:
    """Runs functions on the blocks of Ray Data sets.

    Args:
        ray: the module, which is connected to a cluster.
        n_workers: the largest number of blocks at once. None takes what the cluster has room for.
    """

    def __init__(self, ray: Any, n_workers: int | None) -> None:
        import ray.data as ray_data

        self._ray, self._data = ray, ray_data
        self._compute = ray_data.TaskPoolStrategy(n_workers)
        context = ray_data.DataContext.get_current()
        context.enable_progress_bars = False
        context.raise_original_map_exception = True  # or the reason of an error would be lost
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # its import has set it

    def read(self, pieces: Pieces) -> tuple[RayRows, Array]:
        """Read pieces on the nodes; returns the rows that are kept, and their identities."""
        starts = np.concatenate([[0], np.cumsum(pieces.sizes)]).astype(np.int64)
        reads = self._ray.put(list(pieces.reads))

        def read(batch: Batch) -> Batch:
            (number,) = batch["id"].tolist()
            X, bad = _get(reads)[number]()
            faults = np.array([bad.get(row, "") for row in range(len(X))], dtype=object)
            return {ROW: starts[number] + np.arange(len(X)), VALUE: X, FAULT: faults}

        n = len(pieces.sizes)
        blocks = self.keep(self.map(self._data.range(n, override_num_blocks=n), read))
        bad: Bad = {}
        for batch in self.fetch(blocks.select_columns([ROW, FAULT])):
            faulty = np.flatnonzero([bool(fault) for fault in batch[FAULT]])
            bad |= {int(batch[ROW][i]): str(batch[FAULT][i]) for i in faulty}
        keep = pieces.settle(bad)
        shape = (int(keep.sum()), *self.measure(blocks))
        rows = RayRows(self, blocks.select_columns([ROW, VALUE]), np.flatnonzero(keep), shape)
        return rows, pieces.ids[keep]

    def distribute(self, X: Array) -> RayRows:
        """Spread an array of this process over the nodes."""
        starts = range(0, len(X), PIECE)
        ray, n = self._ray, len(starts)
        parts = [ray.put(np.asarray(X[start : start + PIECE])) for start in starts]

        def unpack(batch: Batch) -> Batch:
            (number,) = batch["id"].tolist()
            part = ray.get(parts[number])
            return {ROW: number * PIECE + np.arange(len(part)), VALUE: part}

        blocks = self.map(self._data.range(n, override_num_blocks=n), unpack)
        return RayRows(self, blocks, np.arange(len(X)), X.shape)

    def map_items(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """What ``work`` makes of each item, in order.

        These are tasks of Ray's core: Ray Data has no items that come one by one.
        """
        stored, variables, folder = self._ray.put(work), cilf_variables(), str(Path.cwd())
        task = self._ray.remote(_run_items).options(num_cpus=1, max_retries=-1)
        left, waiting = iter(items), deque[Any]()
        most = self._compute.size or 2 * int(self._ray.cluster_resources().get("CPU", 1))
        while True:
            while len(waiting) < most and (some := list(islice(left, ITEMS))):
                waiting.append(task.remote(stored, some, variables, folder))
            if not waiting:
                return
            with self._explain():
                yield from self._ray.get(waiting.popleft())

    def map(self, blocks: Any, work: Callable[[Batch], Batch]) -> Any:
        """What ``work`` makes of each block, when it is needed."""
        stored, variables, folder = self._ray.put(work), cilf_variables(), str(Path.cwd())

        def run(batch: Batch) -> Batch:
            _settle_in(variables, folder)
            result: Batch = _get(stored)(batch)
            return result

        return blocks.map_batches(run, batch_size=None, compute=self._compute)

    def keep(self, blocks: Any) -> Any:
        """Compute blocks now. They stay on the nodes."""
        with self._explain():
            return blocks.materialize()

    def fetch(self, blocks: Any) -> Iterator[Batch]:
        """Yield blocks here, as they come."""
        with self._explain():
            yield from blocks.iter_batches(batch_size=None, batch_format="numpy")

    def measure(self, blocks: Any) -> tuple[int, ...]:
        """The shape of one row."""
        with self._explain():
            (first,) = blocks.take_batch(1)[VALUE]
        return np.shape(first)

    def _explain(self) -> _Explain:
        return _Explain(self._ray)


class _Explain:
    """Turns an error of a node into the error of this package that caused it, or into one line."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None or not isinstance(error, self._ray.exceptions.RayError):
            return
        cause = getattr(error, "cause", None) or error
        message = str(cause.args[0] if cause.args else "").partition("\n")[0]  # Ray adds lines
        if isinstance(cause, CilfError):
            raise type(cause)(message) from None
        raise BadInput(
            f"the cluster could not do its part ({type(cause).__name__}: {message}): see that "
            "every node has cilf and the data under the same paths, and run the command again."
        ) from error


# ----------------------------------------------------------------- on a node


def _run_items(
    stored: Any, items: Sequence[Any], variables: Mapping[str, str], folder: str
) -> list[Any]:
    """``stored`` is the function itself here: Ray passes what a reference refers to."""
    _settle_in(variables, folder)
    with refuse_bombs():
        return [stored(item) for item in items]


@lru_cache(maxsize=4)
def _get(stored: Any) -> Any:
    """What is stored under a reference, read once in a process."""
    import ray

    return ray.get(stored)


def _settle_in(variables: Mapping[str, str], folder: str) -> None:
    os.environ.update(variables)
    if Path(folder).is_dir():
        os.chdir(folder)


def _in_blocks(work: Work, X: Array) -> tuple[Array, ...]:
    """What a function returns for all instances, which it gets in blocks of fixed size."""
    return core_rows.map_rows(work, X)


def _to_array(values: Any) -> Array:
    """A column as the array that was put in: texts are an array of objects."""
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "OU" else array
