"""The runs that an item of the paper is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cilf.benchmark import RunConfig
from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.setup import Row, Setup
from cilf.core import WindowRecord
from cilf.core.notices import warn_once
from cilf.errors import BadInput
from cilf.evaluate.metrics import mean
from cilf.evaluate.records import RunFolder
from cilf.evaluate.summary import summarize
from cilf.query.query_policy import FOUND
from cilf.query.strategies import RANDOM
from cilf.report.run import Run


class Cell(NamedTuple):
    """One learner on one data set in one scenario, with the changes from the defaults."""

    learner: str
    data: str
    scenario: str
    query: float = 1.0
    parameters: tuple[tuple[str, Any], ...] = ()
    protocol: str = FOUND
    variant: str = ""
    strategy: str = RANDOM

    @property
    def row(self) -> Row:
        """The row of a comparison that the cell belongs to."""
        return Row(self.learner, self.variant, self.parameters)

    @property
    def name(self) -> str:
        return self.row.name

    def config(self, setup: Setup, seed: int) -> RunConfig:
        return RunConfig.of(
            learner=self.learner, data=self.data, scenario=self.scenario, seed=seed,
            scale=setup.scale, query=self.query, parameters=dict(self.parameters),
            protocol=self.protocol, strategy=self.strategy,
        )  # fmt: skip


Results = Mapping[Cell, Mapping[int, Run]]
"""The finished runs of each cell, by seed."""


def read_results(
    cells: Iterable[Cell], setup: Setup, find_folder: Callable[[RunConfig], Path]
) -> Results:
    """Read the finished runs of these cells; ``find_folder`` says where a run is kept."""
    found: dict[Cell, dict[int, Run]] = {}
    for cell in cells:
        runs = {seed: _read_run(find_folder(cell.config(setup, seed))) for seed in setup.all_seeds}
        found[cell] = {seed: run for seed, run in runs.items() if run is not None}
    return found


def _read_run(folder: Path) -> Run | None:
    if not RunFolder(folder).exists():
        return None
    try:
        run = Run.read(RunFolder(folder))
    except BadInput as error:
        warn_once(f"a damaged run is left out: {error}")
        return None
    return run if run.finished else None


def collect_records(runs: Mapping[int, Run]) -> dict[int, list[WindowRecord]]:
    """Return the records of each seed."""
    return {seed: run.records for seed, run in runs.items()}


def list_data(results: Results) -> list[str]:
    """List the data sets in order of appearance."""
    return list(dict.fromkeys(cell.data for cell in results))


def select_data(results: Results, data: str) -> Results:
    """Select the cells of one data set."""
    return {cell: runs for cell, runs in results.items() if cell.data == data}


def drop_empty(results: Results) -> Results:
    """Leave out the cells that have no finished run."""
    return {cell: runs for cell, runs in results.items() if runs}


def name_file(name: str, data: str, results: Results) -> str:
    """Name a file by the item and, if there are several data sets, by its data set."""
    return name if len(list_data(results)) == 1 else f"{name}-{data_file_name(data)}"


def average_windows(runs: Mapping[int, Run], metric: str) -> list[float]:
    """Compute the mean of a metric over windows for each seed."""
    return [summarize(run.records)[metric] for run in runs.values()]


def average_seeds(runs: Mapping[int, Run], metric: str) -> float:
    """Compute the mean of a metric over windows and seeds; NaN if there is no run."""
    return mean(average_windows(runs, metric))
