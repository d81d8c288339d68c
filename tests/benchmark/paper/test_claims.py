from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark.paper.claims import (
    NO,
    OPEN,
    PARTLY,
    YES,
    judge_best,
    judge_clustering,
    judge_deep,
    judge_labels,
    judge_least_forgetting,
    judge_seconds,
    judge_weights,
    list_claims,
)
from cilf.benchmark.paper.item import Inputs
from cilf.benchmark.paper.items import ITEMS
from cilf.benchmark.paper.results import Cell
from cilf.benchmark.paper.setup import Setup
from cilf.core import WindowRecord
from cilf.evaluate.records import RunFolder
from cilf.report.run import Run

METRICS = ("plan_h", "plan_na", "plan_macro_f", "plan_micro_f", "plan_auroc")


def run_of(value: float, *, seconds: float = 1.0, accuracy: float = 0.5) -> Run:
    """A run of one window in which every metric of detection has this value."""
    blank: dict[str, Any] = dict.fromkeys((f.name for f in dataclasses.fields(WindowRecord)), 0)
    values = {
        "window": 1, "seconds_detect": seconds, "seconds_update": seconds, "named": {},
        "holdout_accuracy": {0: accuracy}, "holdout_classes": {0: 1},
        "extra": dict.fromkeys(METRICS, value),
    }  # fmt: skip
    return Run(RunFolder(Path("run")), {}, [WindowRecord(**(blank | values))], (), ())


def cells(values: Mapping[str, float], data: str = "mnist", **changes: Any) -> dict[Cell, Any]:
    return {
        Cell(name, data, "multiple", **changes): {1000: run_of(value)}
        for name, value in values.items()
    }


def test_who_is_ahead_everywhere_reproduces_and_who_is_behind_is_told_by_how_much() -> None:
    values = {"cilf": 0.6, "cilf-paper": 0.5, "cpe": 0.55, "never": 0.1}
    results = cells(values) | cells({"cilf": 0.2, "dtc": 0.25}, "cifar10")
    verdict = judge_best("cilf")(results)
    assert verdict.holds == PARTLY
    assert verdict.numbers.startswith("first in 5 of 10 columns; farthest behind: ")
    assert "H CIFAR-10 multiple, dtc by 0.050" in verdict.numbers
    assert judge_best("cilf")(cells(values)).holds == YES
    assert judge_best("cilf-paper")(cells(values)).holds == NO
    assert judge_best("cilf")({}).holds == OPEN


def test_less_forgetting_is_ahead() -> None:
    given = {"protocol": "given"}
    results = {
        Cell(name, "mnist", "single", **given): {1000: run_of(0.0, accuracy=accuracy)}
        for name, accuracy in {"joint": 0.9, "cilf": 0.8, "dnn-base": 0.3, "cpe": 0.85}.items()
    }
    verdict = judge_least_forgetting("cilf")(results)
    assert (verdict.holds, verdict.numbers.split(";")[0]) == (NO, "first in 0 of 1 columns")
    del results[Cell("cpe", "mnist", "single", **given)]
    assert judge_least_forgetting("cilf")(results).holds == YES


def test_rivals_are_compared_by_their_group() -> None:
    results = cells({"cpe": 0.4, "dtc": 0.6, "iforest": 0.2})
    assert judge_deep(results).holds == YES
    assert "MNIST multiple +0.300" in judge_deep(results).numbers
    assert judge_clustering(results).holds == NO
    assert "MNIST multiple -0.200 (cpe)" in judge_clustering(results).numbers
    assert judge_deep(cells({"cpe": 0.4})).holds == OPEN


def test_labels_and_weights_are_compared_at_their_ends() -> None:
    shares = {share: cells({"cilf": value}, "cifar10", query=share)
              for share, value in {0.2: 0.3, 0.6: 0.6, 1.0: 0.5}.items()}  # fmt: skip
    results = {cell: runs for each in shares.values() for cell, runs in each.items()}
    assert judge_labels(results).holds == YES
    assert "+0.200" in judge_labels(results).numbers
    weights: dict[Cell, Any] = {}
    for one, value in {0.01: 0.7, 1.0: 0.9, 100.0: 0.6}.items():
        changes = (("loss__lambda1", one), ("loss__lambda2", 1.0))
        weights |= cells({"cilf": value}, "cifar10", parameters=changes)
    assert judge_weights("cilf")(weights).holds == NO
    assert "multiple -0.100" in judge_weights("cilf")(weights).numbers
    assert judge_weights("cilf-paper")(weights).holds == OPEN


def test_the_fastest_is_named() -> None:
    seconds = {"cilf": 4.0, "cpe": 2.0, "dtc": 9.0}
    results = {
        Cell(name, "cifar10", "multiple"): {1000: run_of(0.5, seconds=each)}
        for name, each in seconds.items()
    }
    verdict = judge_seconds("cilf")(results)
    assert verdict.holds == NO
    assert verdict.numbers == "CIFAR-10 multiple 8 s, fastest cpe with 4 s"
    for cell, runs in results.items():
        runs[1000].about["commit"] = cell.learner  # seconds of other code do not compare
    assert judge_seconds("cilf")(results).holds == OPEN


@pytest.mark.parametrize("about", ["cilf", "cilf-paper"])
def test_every_claim_has_a_row_for_both_forms(tmp_path: Path, about: str) -> None:
    texts = {claim.text for claim in list_claims() if claim.about in (about, "rivals")}
    others = {claim.text for claim in list_claims()} - texts
    assert others <= {"More labels are better"}
    inputs = Inputs("claims", "title", Setup("smoke"), cells({"cilf": 0.5}), tmp_path, tmp_path)
    ITEMS["claims"].write(inputs)
    page = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert all(text in page for text in texts)
