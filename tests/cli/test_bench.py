"""``cilf bench`` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

GRID = """\
learner = ["iforest", "one-svm"]
data = "digits"
[stream]
n_windows = 2
window_size = 8
"""
BROKEN = """\
from cilf.learners import IForest

class Broken(IForest):
    name = "broken"

    def _fit(self, X, y):
        raise ValueError("no [way]")
"""


@pytest.fixture
def grid(run: Any) -> str:
    Path("small.toml").write_text(GRID, encoding="utf-8")
    return "small.toml"


def test_a_grid_is_run_told_about_and_not_run_again(run: Any, grid: str) -> None:
    done = run("bench", grid, "--jobs", "1")
    assert done.code == 0
    said = done.err.splitlines()
    assert said[0].startswith("2 cells, 0 of them done already; 2 to run, 1 at once, expected time")
    assert said[1].startswith("1 of 2 cells done, 0 running, 0 failed, time left ")
    assert said[-1].startswith("2 of 2 cells done, 0 running, 0 failed, time left about 0 s")
    assert len(said) == 3
    lines = done.out.splitlines()
    assert lines[0] == "digits multiple stream.n_windows=2 stream.window_size=8"
    names = [line.split()[0] for line in lines if line.split()]
    h = [float(line.split()[2]) for line in lines if line.startswith((" iforest", " one-svm"))]
    assert {"learner", "iforest", "one-svm"} < set(names)
    assert h == sorted(h, reverse=True)  # in the order of H
    assert lines[-1] == "2 of 2 cells done: runs/small"
    again = run("bench", grid, "--jobs", "1", "--json")
    assert again.err == "2 cells, 2 of them done already\n"
    document = json.loads(again.out)
    assert (document["n_done"], document["n_failed"], document["out"]) == (2, 0, "runs/small")
    assert [cell["learner"] for cell in document["cells"]] == ["iforest", "one-svm"]
    assert [cell["summary"]["n_windows"] for cell in document["cells"]] == [2, 2]
    assert run("report", "runs/small").code == 0


def test_a_failing_cell_is_told_and_makes_exit_code_1(run: Any, grid: str) -> None:
    Path("broken.py").write_text(BROKEN, encoding="utf-8")
    Path(grid).write_text(GRID.replace("one-svm", "broken.py:Broken"), encoding="utf-8")
    done = run("bench", grid, "--out", "here", "--jobs", "2", "--json")
    assert done.code == 1
    document = json.loads(done.out)
    assert [cell["status"] for cell in document["cells"]] == ["done", "failed"]
    failed = document["cells"][1]
    assert (failed["error"], failed["summary"]) == ("ValueError: no [way]", None)
    trace = Path("here/cells") / failed["cell"] / "error.txt"
    last = f"failed: {failed['cell']}: ValueError: no [way] ({trace})"
    assert done.err.splitlines()[-1] == last
    assert 'raise ValueError("no [way]")' in trace.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "text", "said"),
    [
        ([], GRID.replace("data", "dta"), "unknown key of the grid 'dta': did you mean 'data'"),
        ([], GRID.replace("one-svm", "one-smv"), "did you mean 'one-svm'"),
        ([], GRID.replace("one-svm", "mine.py:Mine"), "cannot read mine.py"),
        (["--engine", "rai"], GRID, "unknown engine 'rai': did you mean 'ray'"),
        (["--jobs", "0"], GRID, "jobs is 0: give a whole number of at least 1"),
        (["--address", "auto"], GRID, "address is for engine ray, not local"),
        (["--gpu-share", "0.5"], GRID, "gpu_share is for engine ray, not local"),
        (["--engine", "ray", "--gpu-share", "-1"], GRID, "gpu_share is -1"),
    ],
)
def test_a_mistake_costs_one_line(
    run: Any, grid: str, options: list[str], text: str, said: str
) -> None:
    Path(grid).write_text(text, encoding="utf-8")
    done = run("bench", grid, *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
    assert not Path("runs").exists()


def test_a_missing_extra_is_named_before_anything_starts(
    run: Any, grid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'cilf[cluster]'" in run("bench", grid, "--engine", "ray").err
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    assert "pip install 'cilf[tensorboard]'" in run("bench", grid, "--tensorboard").err
    assert not Path("runs").exists()


def test_a_dry_run_prints_the_work_and_does_none(run: Any, grid: str) -> None:
    done = run("bench", grid, "--jobs", "2", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 cells, 0 of them done already; 2 to run, 2 at once, expected")
    document = json.loads(run("bench", grid, "--jobs", "1", "--dry-run", "--json").out)
    assert document.pop("expected_seconds") > 0
    assert document == {
        "out": "runs/small", "n_cells": 2, "n_done": 0, "n_to_run": 2, "n_at_once": 1, "speeds": [],
    }  # fmt: skip
    assert not Path("runs").exists()
    run("bench", grid, "--jobs", "1")
    assert run("bench", grid, "--dry-run").out == "2 cells, 2 of them done already\n"
