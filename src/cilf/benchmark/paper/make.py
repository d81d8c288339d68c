"""From names of items to files: the cells to run, then the tables and figures of what was run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cilf.benchmark import RunConfig
from cilf.benchmark.bench import CELLS, Bench
from cilf.benchmark.grid import GridCell
from cilf.benchmark.paper.items import ITEMS, Item
from cilf.benchmark.paper.results import Making, finished
from cilf.benchmark.paper.setup import Setup
from cilf.core import progress, validation
from cilf.core.files import make_folder, replace_file
from cilf.report.paper_items import INDEX

ALL = "all"
KEPT = "maps"  # below a folder of the paper: what takes long and is no run


def chosen(names: Sequence[str]) -> list[Item]:
    """The items of these names; "all" stands for every one.

    >>> [item.name for item in chosen(["figure4", "table2"])]
    ['figure4', 'table2']
    """
    if ALL in names:
        return list(ITEMS.values())
    return [ITEMS[validation.one_of("item", name, [*ITEMS, ALL])] for name in names]


def open_bench(items: Iterable[Item], setup: Setup, out: Path) -> Bench:
    """The cells of these items; one that several share is there once."""
    configs = [
        cell.config(setup, seed)
        for item in items
        for cell in item.cells(setup)
        for seed in setup.repetitions
    ]
    return Bench.of_cells([GridCell.of(config) for config in configs], out)


class Made(NamedTuple):
    """An item that was made."""

    item: Item
    files: list[Path]
    n_missing: int  # runs that are not finished

    def to_json(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files], "n_missing": self.n_missing}


def make(items: Sequence[Item], setup: Setup, out: Path, *, fit: bool = True) -> Iterator[Made]:
    """Tables and figures of the finished runs below ``out``.

    Without ``fit``, figures of models that no run has made show those that were kept.
    """

    def place(config: RunConfig) -> Path:
        return out / CELLS / GridCell.of(config).folder

    make_folder(out / CELLS)  # by which the folder is known the next time
    index: dict[str, dict[str, Any]] = _read_index(out)
    for number, item in enumerate(items):
        progress.report("tables and figures", number, len(items))
        cells = item.cells(setup)
        results = finished(cells, setup, place)
        there = sum(len(runs) for runs in results.values())
        making = Making(setup, results, out, out / KEPT, fit)
        drawable = there or not item.of_runs
        files = item.draw(making, item.name, item.title) if drawable else []
        named = {"title": item.title, "about": item.about}
        index[item.name] = named | {"files": [path.name for path in files]}
        replace_file(out / INDEX, json.dumps({"items": index}, indent=1).encode())
        yield Made(item, files, len(cells) * len(setup.repetitions) - there)


def _read_index(out: Path) -> dict[str, dict[str, Any]]:
    """Items that were made before."""
    path = out / INDEX
    return dict(json.loads(path.read_text(encoding="utf-8"))["items"]) if path.exists() else {}
