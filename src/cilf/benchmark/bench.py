"""A benchmark: the cells of a grid in one folder. Each is run once, however often it is started.

::

    grid.json           the cells of the last grid, with what each changes
    cells/NAME/         a run folder for each, named by its names and a hash of its parameters
    locks/              who works on a cell holds the file of its name
    fits/               fitted learners that the cells of one call share; removed at its end
"""

from __future__ import annotations

import json
import math
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cilf.benchmark.engines import Ended, Engine, Event, Lost, Started
from cilf.benchmark.grid import Grid, GridCell
from cilf.benchmark.job import Job
from cilf.benchmark.provenance import provenance
from cilf.benchmark.run_time import RunTime
from cilf.core.files import make_folder, replace_file
from cilf.errors import BadInput
from cilf.evaluate import summarize
from cilf.evaluate.records import RunFolder

FORMAT = 1
CELLS, LOCKS, FITS, INDEX = "cells", "locks", "fits", "grid.json"

Status = Literal["waiting", "running", "done", "failed"]


@dataclass
class State:
    """The state of a cell."""

    cell: GridCell
    folder: RunFolder
    status: Status = "waiting"
    error: str | None = None
    seconds: float | None = None  # of a cell that is done
    since: float = math.nan  # when a running cell was started

    @property
    def name(self) -> str:
        return self.cell.folder

    def windows(self) -> tuple[int, int]:
        """The numbers of finished and of all windows, from the folder; (0, 0) if it is empty."""
        try:
            planned = self.folder.read_run()["plan"]["windows"]
            return len(self.folder.read_records()), len(planned)
        except (BadInput, KeyError, TypeError):
            return 0, 0

    def to_json(self) -> dict[str, Any]:
        """The state as JSON holds it, with the summary of a cell that is done."""
        about = self.cell.config.model_dump(mode="json")
        done = self.status == "done"
        return {
            "cell": self.name,
            "override": self.cell.override,
            **about,
            "status": self.status,
            "error": self.error,
            "seconds": self.seconds,
            "summary": summarize(self.folder.read_records()) if done else None,
        }


@dataclass
class Bench:
    """The cells of a grid and the state of each.

    >>> import tempfile
    >>> from cilf.benchmark.engines import LocalEngine
    >>> grid = Grid.of({"learner": "iforest", "data": "digits", "stream": {"n_windows": 1}})
    >>> bench = Bench.open(grid, tempfile.mkdtemp())
    >>> [type(event).__name__ for event in bench.run(LocalEngine(1))]
    ['Started', 'Ended']
    >>> bench.count("done")
    1
    """

    out: Path
    states: dict[str, State]  # by name of the cell's folder
    run_time: RunTime = field(default_factory=RunTime)

    @classmethod
    def open(cls, grid: Grid, out: str | Path) -> Bench:
        """Open the benchmark in a folder and read what is done; nothing is written yet."""
        return cls.of_cells(grid.cells(), out)

    @classmethod
    def of_cells(cls, cells: Iterable[GridCell], out: str | Path) -> Bench:
        """Open a benchmark of cells that no grid describes."""
        path = Path(out)
        _require_bench_folder(path)
        states = {cell.folder: State(cell, RunFolder(path / CELLS / cell.folder)) for cell in cells}
        bench = cls(path, states)
        for state in states.values():
            bench._read_state(state)
        return bench

    def run(self, engine: Engine, *, trackers: Sequence[str] = ()) -> Iterator[Event]:
        """Run what is not done yet; the states follow each event before it is yielded.

        Cells that differ in what happens after the fit share one fitted learner. It is kept for
        this call alone: another one may run other code.
        """
        engine.check()
        self._write_index()
        with self._share_fits() as fits:
            jobs = [self._job(state, trackers, fits) for state in self.with_status("waiting")]
            with closing(engine.run(jobs)) as events:
                for event in events:
                    self._apply(event)
                    yield event

    @contextmanager
    def _share_fits(self) -> Iterator[Path]:
        """Hold a folder for fitted learners inside the block."""
        place = self.out.absolute() / FITS / uuid.uuid4().hex
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            with suppress(OSError):  # another call has its own there, or there is none
                place.parent.rmdir()

    def _job(self, state: State, trackers: Sequence[str], fits: Path) -> Job:
        out, cell = self.out.absolute(), state.cell
        folder, lock = out / CELLS / cell.folder, out / LOCKS / cell.folder
        return Job(cell.config, cell.key, folder, lock, tuple(trackers), fits)

    def with_status(self, status: Status) -> list[State]:
        """The cells with this status."""
        return [state for state in self.states.values() if state.status == status]

    def count(self, status: Status) -> int:
        return len(self.with_status(status))

    def forecast(self) -> None:
        """Forecast the run times of waiting cells about which nothing is known."""
        self.run_time.forecast(state.cell.config for state in self.with_status("waiting"))

    def seconds_left(self, n_slots: int) -> float | None:
        """Expected seconds until all is done with ``n_slots`` cells at once; None if unknown."""
        left = [
            self._seconds_left(state)
            for state in (*self.with_status("waiting"), *self.with_status("running"))
        ]
        known = [seconds for seconds in left if seconds is not None]
        if len(known) < len(left):
            return None
        return max(sum(known) / n_slots, max(known, default=0.0))

    def _seconds_left(self, state: State) -> float | None:
        expected = self.run_time.estimate(state.cell.config)
        if expected is None or state.status == "waiting":
            return expected
        return max(0.0, expected - (time.monotonic() - state.since))

    def _read_state(self, state: State) -> None:
        """Set the state from the folder. The seconds of a resumed run are not all it took."""
        try:
            ended = state.folder.finished()
            run = state.folder.read_run() if ended else {}
        except BadInput:  # a damaged folder: its cell will fail and say so
            return
        n_read, n_planned = state.windows()
        if (
            ended and 0 < n_planned == n_read
        ):  # else its records are damaged, which its cell will say too
            state.status, state.seconds = "done", ended.get("seconds")
            if state.seconds is not None and "resumed" not in run and not run.get("shared_fit"):
                self.run_time.add(state.cell.config, state.seconds)

    def _apply(self, event: Event) -> None:
        state = self.states[event.job.folder.name]
        if isinstance(event, Started):
            state.status, state.since = "running", time.monotonic()
        elif isinstance(event, Lost):
            state.status = "waiting"
        elif isinstance(event, Ended):
            state.error, state.seconds = event.result.error, event.result.seconds
            state.status = "failed" if state.error else "done"
            if not state.error:
                self.run_time.add(state.cell.config, state.seconds)

    def _write_index(self) -> None:
        make_folder(self.out / CELLS)
        cells = [
            {"cell": s.name, "override": s.cell.override, "config": s.cell.config.model_dump()}
            for s in self.states.values()
        ]
        text = json.dumps({"format": FORMAT, "cells": cells} | provenance(), indent=1)
        replace_file(self.out / INDEX, text.encode())


def _require_bench_folder(out: Path) -> None:
    """Refuse a folder with other things in it."""
    if out.is_file():
        raise BadInput(f"{out} is a file: name a new or an empty folder, or one of a benchmark.")
    if out.is_dir() and not (out / INDEX).exists() and not (out / CELLS).is_dir():
        others = sorted(path.name for path in out.iterdir())
        if others:
            raise BadInput(
                f"{out} holds other things ({others[0]}, ...): name a new or an empty folder, "
                "or one that a benchmark made."
            )
