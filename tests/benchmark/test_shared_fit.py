"""Cells that start alike share one fitted learner, and their records are those of cells alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import Bench, Cell, Grid, RunConfig, run_cell
from cilf.evaluate.checkpoint import is_model
from cilf.learners import Learner, learner_class

from .grids import run, untimed

SMALL = {"n_windows": 2, "window_size": 8, "initial_size": 30, "holdout_size": 5}


def config(**values: Any) -> RunConfig:
    names = {"learner": "never", "data": "digits", "scenario": "multiple", "stream": SMALL}
    return RunConfig.of(**(names | values))


def test_the_place_of_a_fit_depends_on_what_is_fitted_and_on_what() -> None:
    key = Cell.build(config()).fit_key
    for same in ({"protocol": "given"}, {"query": 0.5}, {"n_novel": 2}, {"strategy": "uncertain"}):
        assert Cell.build(config(**same)).fit_key == key, same
    stream = {"stream": SMALL | {"initial_size": 31}}
    others = ({"seed": 1}, {"parameters": {"epochs": 3}}, {"query": "self"}, stream)
    assert key not in {Cell.build(config(**other)).fit_key for other in others}


def test_the_second_of_two_protocols_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[str] = []
    never = learner_class("never")
    fit = never.fit

    def counting(self: Learner, X: Any, y: Any) -> Learner:
        fits.append(self.name)
        return fit(self, X, y)

    monkeypatch.setattr(never, "fit", counting)
    for protocol in ("found", "given"):
        one = config(protocol=protocol, parameters={"epochs": 1})
        list(run_cell(one, tmp_path / protocol, fits=tmp_path / "fits"))
    assert fits == ["never"]
    (kept,) = (tmp_path / "fits").iterdir()
    assert is_model(kept)


@pytest.mark.parametrize("name", ["one-svm", "dnn-ewc", "cilf"])
def test_records_are_those_of_cells_that_fit_themselves(name: str, tmp_path: Path) -> None:
    grid = Grid.of({
        "learner": name, "data": "digits", "protocol": ["found", "given"], "stream": SMALL,
        "parameters": {} if name == "one-svm" else {name: {"epochs": 1}},
    })  # fmt: skip
    bench, _ = run(grid, tmp_path / "out")
    assert [state.error for state in bench.states.values()] == [None, None]
    assert not (tmp_path / "out" / "fits").exists()
    shared = [state.folder.read_run()["shared_fit"] for state in bench.states.values()]
    assert shared == [False, True]
    for state in bench.states.values():
        list(run_cell(state.cell.config, tmp_path / "alone" / "cells" / state.name))
    alone = Bench.open(grid, tmp_path / "alone")
    assert untimed(bench) == untimed(alone)
