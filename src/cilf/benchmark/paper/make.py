"""From items to files: the cells to run, then the tables and figures of the finished runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cilf.benchmark import RunConfig
from cilf.benchmark.bench import CELLS, Bench
from cilf.benchmark.grid import GridCell
from cilf.benchmark.paper.item import Inputs, Item
from cilf.benchmark.paper.results import read_results
from cilf.benchmark.paper.setup import Setup
from cilf.core import progress
from cilf.core.files import make_folder, replace_file
from cilf.report.paper_items import INDEX, read_index

CACHE = "maps"  # folder below the output, for maps that take long to compute


def open_bench(items: Mapping[str, Item], setup: Setup, out: Path) -> Bench:
    """Open a benchmark of the cells of these items; items share cells."""
    configs = [
        cell.config(setup, seed)
        for item in items.values()
        for cell in item.cells(setup)
        for seed in setup.all_seeds
    ]
    return Bench.of_cells([GridCell.of(config) for config in configs], out)


class WrittenItem(NamedTuple):
    """An item and its files."""

    name: str
    title: str
    files: list[Path]
    n_missing: int  # runs that are not finished

    def to_json(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files], "n_missing": self.n_missing}


def write_items(
    items: Mapping[str, Item], setup: Setup, out: Path, *, fit: bool = True
) -> Iterator[WrittenItem]:
    """Write the tables and figures of the finished runs below ``out``.

    Without ``fit`` no model is fitted: figures of models show those that are in the cache.
    """

    def find_folder(config: RunConfig) -> Path:
        return out / CELLS / GridCell.of(config).folder

    make_folder(out / CELLS)  # marks the folder as that of a benchmark
    index = read_index(out)
    for number, (name, item) in enumerate(items.items()):
        progress.report("tables and figures", number, len(items))
        cells = item.cells(setup)
        results = read_results(cells, setup, find_folder)
        n_runs = sum(len(runs) for runs in results.values())
        inputs = Inputs(name, item.title, setup, results, out, out / CACHE, fit)
        files = item.write(inputs) if n_runs or not item.needs_runs else []
        names = [path.name for path in files]
        index[name] = {"title": item.title, "about": item.about, "files": names}
        replace_file(out / INDEX, json.dumps({"items": index}, indent=1).encode())
        yield WrittenItem(name, item.title, files, len(cells) * len(setup.all_seeds) - n_runs)
