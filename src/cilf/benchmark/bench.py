"""A benchmark: the cells of a grid in one folder, each run once, however often it is started.

::

    grid.json           the cells of the last grid, with what each changes
    cells/NAME/         a run folder for each, named by its names and a hash of its parameters
    locks/              who works on a cell holds the file of its name
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cilf.benchmark.costs import Pace
from cilf.benchmark.engines import Ended, Engine, Event, Lost, Started
from cilf.benchmark.grid import Grid, GridCell
from cilf.benchmark.job import Job
from cilf.benchmark.provenance import provenance
from cilf.core.files import make_folder, replace_file
from cilf.errors import BadInput
from cilf.evaluate import summarize
from cilf.evaluate.records import RunFolder

FORMAT = 1
CELLS, LOCKS, INDEX = "cells", "locks", "grid.json"

Status = Literal["waiting", "running", "done", "failed"]


@dataclass
class State:
    """Where a cell is."""

    cell: GridCell
    folder: RunFolder
    status: Status = "waiting"
    before: bool = False  # whether it was done when the benchmark was opened
    error: str | None = None
    seconds: float | None = None  # it took, if it is done
    since: float = math.nan  # when it was started, if it runs

    @property
    def name(self) -> str:
        return self.cell.folder

    def windows(self) -> tuple[int, int]:
        """(finished, all), as the folder says now; (0, 0) if it says nothing yet."""
        try:
            planned = self.folder.read_run()["plan"]["windows"]
            return len(self.folder.read_records()), len(planned)
        except (BadInput, KeyError, TypeError):
            return 0, 0

    def to_json(self) -> dict[str, Any]:
        """All there is to say, with a summary of the records if the cell is done."""
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
    """The cells of a grid and where each of them is.

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
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def open(cls, grid: Grid, out: str | Path) -> Bench:
        """See what is there already; nothing is written yet."""
        return cls.of_cells(grid.cells(), out)

    @classmethod
    def of_cells(cls, cells: Iterable[GridCell], out: str | Path) -> Bench:
        """The same for cells that no grid describes."""
        path = Path(out)
        _require_ours(path)
        states = {cell.folder: State(cell, RunFolder(path / CELLS / cell.folder)) for cell in cells}
        bench = cls(path, states)
        for state in states.values():
            bench._look(state)
        return bench

    def run(self, engine: Engine, *, tensorboard: bool = False) -> Iterator[Event]:
        """Run what is not done yet; each event comes once the states say the same."""
        engine.check()
        self._write_index()
        jobs = [self._job(state, tensorboard) for state in self.among("waiting")]
        with closing(engine.run(jobs)) as events:
            for event in events:
                self._follow(event)
                yield event

    def _job(self, state: State, tensorboard: bool) -> Job:
        out, cell = self.out.absolute(), state.cell
        folder, lock = out / CELLS / cell.folder, out / LOCKS / cell.folder
        return Job(cell.config, cell.key, folder, lock, tensorboard)

    def among(self, status: Status) -> list[State]:
        """The cells that are there now."""
        return [state for state in self.states.values() if state.status == status]

    def count(self, status: Status) -> int:
        return len(self.among(status))

    def seconds_left(self, n_slots: int) -> float | None:
        """Until all is done, with so many at once; None if some cell has no known cost."""
        left = [self._left(state) for state in (*self.among("waiting"), *self.among("running"))]
        known = [seconds for seconds in left if seconds is not None]
        if len(known) < len(left):
            return None
        return max(sum(known) / n_slots, max(known, default=0.0))

    def _left(self, state: State) -> float | None:
        expected = self.pace.expected(state.cell.config)
        if expected is None or state.status == "waiting":
            return expected
        return max(0.0, expected - (time.monotonic() - state.since))

    def _look(self, state: State) -> None:
        """A run that ended is done; one that was resumed does not tell how long it took."""
        try:
            ended = state.folder.finished()
            run = state.folder.read_run() if ended else {}
        except BadInput:  # a damaged one: its cell will fail and say so
            return
        n_read, n_planned = state.windows()
        if ended and 0 < n_planned == n_read:  # or else its records are damaged: it says so, too
            state.status, state.before, state.seconds = "done", True, ended.get("seconds")
            if state.seconds is not None and "resumed" not in run:
                self.pace.note(state.cell.config, state.seconds)

    def _follow(self, event: Event) -> None:
        state = self.states[event.job.folder.name]
        if isinstance(event, Started):
            state.status, state.since = "running", time.monotonic()
        elif isinstance(event, Lost):
            state.status = "waiting"
        elif isinstance(event, Ended):
            state.error, state.seconds = event.outcome.error, event.outcome.seconds
            state.status = "failed" if state.error else "done"
            if not state.error:
                self.pace.note(state.cell.config, state.seconds)

    def _write_index(self) -> None:
        make_folder(self.out / CELLS)
        cells = [
            {"cell": s.name, "override": s.cell.override, "config": s.cell.config.model_dump()}
            for s in self.states.values()
        ]
        text = json.dumps({"format": FORMAT, "cells": cells} | provenance(), indent=1)
        replace_file(self.out / INDEX, text.encode())


def _require_ours(out: Path) -> None:
    """Refuse a folder with other things in it."""
    if out.is_file():
        raise BadInput(f"{out} is a file: name a new or an empty folder, or one of a benchmark.")
    if out.is_dir() and not (out / INDEX).exists() and not (out / CELLS).is_dir():
        strangers = sorted(path.name for path in out.iterdir())
        if strangers:
            raise BadInput(
                f"{out} holds other things ({strangers[0]}, ...): name a new or an empty folder, "
                "or one that a benchmark made."
            )
