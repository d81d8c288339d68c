"""What an item of the paper is made of: cells, each run once for every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cilf.benchmark import RunConfig
from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.setup import Setup
from cilf.core import WindowRecord
from cilf.core.notices import notice
from cilf.errors import BadInput
from cilf.evaluate.metrics import mean
from cilf.evaluate.records import RunFolder
from cilf.evaluate.summary import summarize
from cilf.learners import learner_class
from cilf.report.run import Run


class Cell(NamedTuple):
    """One learner on one data set in one scenario, with what is changed from the defaults."""

    learner: str
    data: str
    scenario: str
    query: float = 1.0
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """What to call the learner, which may be a class in a file."""
        return learner_class(self.learner).name

    def config(self, setup: Setup, seed: int) -> RunConfig:
        return RunConfig.of(
            learner=self.learner, data=self.data, scenario=self.scenario, seed=seed,
            scale=setup.scale, query=self.query, parameters=dict(self.parameters),
        )  # fmt: skip


Results = Mapping[Cell, Mapping[int, Run]]
"""The finished run of each cell and seed."""


def finished(
    cells: Iterable[Cell], setup: Setup, place: Callable[[RunConfig], Path]
) -> dict[Cell, dict[int, Run]]:
    """The runs of these cells that are there and complete; ``place`` says where one is kept."""
    found: dict[Cell, dict[int, Run]] = {}
    for cell in cells:
        runs = {seed: _read(place(cell.config(setup, seed))) for seed in setup.repetitions}
        found[cell] = {seed: run for seed, run in runs.items() if run is not None}
    return found


def _read(folder: Path) -> Run | None:
    if not RunFolder(folder).exists():
        return None
    try:
        run = Run.read(RunFolder(folder))
    except BadInput as damaged:  # the others are there all the same
        notice(f"a run is left out: {damaged}")
        return None
    return run if run.finished else None


def records(runs: Mapping[int, Run]) -> dict[int, list[WindowRecord]]:
    return {seed: run.records for seed, run in runs.items()}


def datas(results: Results) -> list[str]:
    """The data sets, in order."""
    return list(dict.fromkeys(cell.data for cell in results))


def of_data(results: Results, data: str) -> Results:
    return {cell: runs for cell, runs in results.items() if cell.data == data}


def there(results: Results) -> Results:
    """The cells of which at least one run is there."""
    return {cell: runs for cell, runs in results.items() if runs}


def stem(name: str, data: str, results: Results) -> str:
    """How files are called: by the item, and by the data set if there are several."""
    return name if len(datas(results)) == 1 else f"{name}-{data_file_name(data)}"


def averages(runs: Mapping[int, Run], metric: str) -> list[float]:
    """The metric's mean over windows, of each seed."""
    return [summarize(run.records)[metric] for run in runs.values()]


def average(runs: Mapping[int, Run], metric: str) -> float:
    """The mean of that over seeds; NaN if there are none."""
    return mean(averages(runs, metric))


@dataclass(frozen=True)
class Making:
    """All that a table or a figure is made of."""

    setup: Setup
    results: Results
    out: Path  # where its files go
    kept: Path  # where what takes long is kept
    fit: bool = True  # whether what is not kept may be made, which takes long
