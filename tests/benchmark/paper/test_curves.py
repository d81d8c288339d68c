from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark.paper.curves import LAMBDA1, LAMBDA2, _average_by_share
from cilf.benchmark.paper.item import Inputs
from cilf.benchmark.paper.items import ITEMS, select_items
from cilf.benchmark.paper.make import write_items
from cilf.benchmark.paper.results import Cell
from cilf.benchmark.paper.setup import Setup
from cilf.core import WindowRecord
from cilf.report.run import Run


def read_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_undefined_values_and_missing_runs_leave_a_curve(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    learners = ("senc-mas", "one-svm")
    setup = Setup("smoke", data=(str(few_digits),), seeds=(0, 1, 2), learners=learners)
    for seed in (0, 1):
        folder = keep_run(setup, "senc-mas", seed)
        folder.write_records([undefine(r, "plan_known_auroc") for r in folder.read_records()])
    keep_run(setup, "one-svm", 0).write_run({})
    written = list(write_items(select_items(["table2", "figure6"]), setup, tmp_path))
    assert [item.n_missing for item in written] == [13, 4]
    assert all(item.files for item in written)
    table = {(r["learner"], r["variant"]): r for r in read_rows(tmp_path / "table2.csv")}
    assert (table["senc-mas", ""]["n_seeds"], table["one-svm", ""]["n_seeds"]) == ("2", "0")
    rows = read_rows(tmp_path / "figure6.csv")
    assert {row["learner"] for row in rows} == {"senc-mas"}
    assert {row["value"] for row in rows if row["metric"] == "plan_known_auroc"} == {""}


def undefine(record: WindowRecord, metric: str) -> WindowRecord:
    return dataclasses.replace(record, extra={**record.extra, metric: math.nan})


def test_weights_queries_and_seconds_are_plotted_from_the_records(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    """One run stands for each cell: what is read from it is known."""
    setup = Setup("smoke", data=(str(few_digits),), learners=("cilf", "cilf-paper"))
    run = Run.read(keep_run(setup, "iforest", 0))
    seconds = sum(record.seconds_update for record in run.records)
    expected = {"figure9": 7 * 2 * 9, "figure10": 2 * 2 * 9, "figure11": 4}
    for name, n_rows in expected.items():
        results = {cell: {0: run} for cell in ITEMS[name].cells(setup)}
        inputs = Inputs(name, ITEMS[name].title, setup, results, tmp_path, tmp_path)
        assert [path.suffix for path in ITEMS[name].write(inputs)] == [".png", ".svg", ".csv"]
        assert len(read_rows(tmp_path / f"{name}.csv")) == n_rows
    update = read_rows(tmp_path / "figure11.csv")[3]
    assert (update["learner"], update["step"]) == ("cilf", "update")
    assert float(update["seconds"]) == pytest.approx(seconds)
    weights = read_rows(tmp_path / "figure10.csv")
    assert {row["lambda1"] for row in weights} == {"0.01", "1.0", "100.0"}
    assert {row["learner"] for row in weights} == {"cilf", "cilf-paper"}


def test_labels_are_queried_by_two_strategies_that_meet_at_all_labels() -> None:
    cells = ITEMS["figure9"].cells(Setup("cpu"))
    assert {(cell.query, cell.strategy) for cell in cells} == {
        (share, strategy)
        for share in (0.2, 0.4, 0.6, 0.8, 1.0)
        for strategy in ("random", "representative")
    } - {(1.0, "representative")}
    lines = _average_by_share({cell: {} for cell in cells}, "plan_h")
    assert {name: list(line.x) for name, line in lines.items()} == {
        f"cilf, {scenario}, {strategy}": [0.2, 0.4, 0.6, 0.8, 1.0]
        for scenario in ("single", "multiple")
        for strategy in ("random", "representative")
    }


def test_the_weights_of_both_forms_of_cilf_are_varied() -> None:
    cells = ITEMS["figure10"].cells(Setup("smoke", own=("mine.py:Mine",)))
    assert {cell.learner for cell in cells} == {"cilf-paper", "cilf"}
    weights = ((LAMBDA1, 0.01), (LAMBDA2, 0.01))
    assert cells[0] == Cell("cilf-paper", "digits", "single", 1.0, weights)
