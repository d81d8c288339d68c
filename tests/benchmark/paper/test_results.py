from __future__ import annotations

from pathlib import Path
from typing import Any

from cilf.benchmark.bench import CELLS
from cilf.benchmark.grid import GridCell
from cilf.benchmark.paper.results import Cell, Results, drop_empty, name_file, read_results
from cilf.benchmark.paper.setup import Setup


def test_damaged_unfinished_and_missing_runs_are_left_out(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    setup = Setup("smoke", seeds=(0, 1, 2, 3))
    whole, damaged, unfinished = (keep_run(setup, "iforest", seed) for seed in range(3))
    damaged.write_run({})
    unfinished.write_records(unfinished.read_records()[:-1])
    cells = [Cell(name, str(few_digits), "single") for name in ("iforest", "one-svm")]
    results = read_results(cells, setup, lambda c: tmp_path / CELLS / GridCell.of(c).folder)
    assert {cell.name: list(runs) for cell, runs in results.items()} == {
        "iforest": [0],
        "one-svm": [],
    }
    assert list(drop_empty(results)) == cells[:1]
    assert results[cells[0]][0].records == whole.read_records()


def test_files_are_named_by_the_data_set_if_there_are_several() -> None:
    one: Results = {Cell("cilf", "mnist", "single"): {}}
    two: Results = {**one, Cell("cilf", "photos/garden/", "single"): {}}
    assert name_file("figure6", "mnist", one) == "figure6"
    assert name_file("figure6", "photos/garden/", two) == "figure6-garden"
