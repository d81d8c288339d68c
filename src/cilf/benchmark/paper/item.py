"""An item of the paper: the cells to run, and the function that writes its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cilf.benchmark.paper.results import Cell, Results
from cilf.benchmark.paper.setup import Row, Setup
from cilf.query.query_policy import FOUND

SINGLE, MULTIPLE = "single", "multiple"


@dataclass(frozen=True)
class Inputs:
    """The inputs from which the files of an item are made.

    Attributes:
        name: name of the item, with which the names of its files begin.
        title: title of the item.
        setup: scale, data sets, seeds and learners.
        results: finished runs of the item's cells.
        out: folder of the files.
        cache: folder of maps that were computed before.
        fit: whether models that are not in the cache may be fitted.
    """

    name: str
    title: str
    setup: Setup
    results: Results
    out: Path
    cache: Path
    fit: bool = True


def _no_cells(setup: Setup) -> list[Cell]:
    return []


@dataclass(frozen=True)
class Item:
    """A table or a figure of the paper.

    Attributes:
        title: title on the page and in the files.
        about: what to see in it, for a reader who does not know the paper.
        write: writes the files and returns their paths.
        cells: the cells to run.
        models: cells whose learner is only fitted, while the files are written.
        needs_runs: whether there is nothing to write without a finished run.
    """

    title: str
    about: str
    write: Callable[[Inputs], list[Path]]
    cells: Callable[[Setup], list[Cell]] = _no_cells
    models: Callable[[Setup], list[Cell]] = _no_cells
    needs_runs: bool = True


def cross(
    rows: Sequence[Row], data: Sequence[str], scenario: str, protocol: str = FOUND
) -> list[Cell]:
    """Return a cell for each row of a comparison on each data set."""
    return [
        Cell(
            row.learner, name, scenario,
            parameters=row.parameters, protocol=protocol, variant=row.variant,
        )
        for name in data
        for row in rows
    ]  # fmt: skip


def describe_scenario(scenario: str) -> str:
    """Describe the scenario in a sentence."""
    novel = "one novel class" if scenario == SINGLE else "several novel classes"
    return f"Each window of the stream brings {novel}."
