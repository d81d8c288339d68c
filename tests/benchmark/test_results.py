"""Means over seeds, and forgetting where joint is part of the grid."""

from __future__ import annotations

import math

import pytest

from cilf.benchmark import Bench, Grid
from cilf.benchmark.engines import LocalEngine
from cilf.benchmark.results import Difference, means
from cilf.evaluate import summarize

JOINT = {"epochs": 1, "backbone": "mlp"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    grid = Grid.of(
        {
            "learner": ["iforest", "joint"], "data": "digits", "seed": [0, 1],
            "parameters": {"joint": JOINT}, "stream": {"n_windows": 1},
            "override": [{"name": "longer", "only": {"learner": "iforest", "seed": 0},
                          "stream": {"n_windows": 2}}],
        }
    )  # fmt: skip
    made = Bench.open(grid, tmp_path_factory.mktemp("bench"))
    assert sum(1 for _ in made.run(LocalEngine(1))) > 0
    return made


def test_cells_that_differ_by_their_seed_are_one_row(bench: Bench) -> None:
    rows = means(bench.with_status("done"))
    assert [(row.learner, row.n_seeds) for row in rows] == [
        ("iforest", 2), ("joint", 2), ("iforest", 1),
    ]  # fmt: skip
    states = [s for s in bench.with_status("done") if s.cell.config.learner == "iforest"][:2]
    na = [summarize(state.folder.read_records())["na"] for state in states]
    assert rows[0].summary["na"] == pytest.approx(sum(na) / 2)
    assert "longer:" in rows[2].changed


def test_forgetting_is_measured_where_joint_ran_on_the_same_stream(bench: Bench) -> None:
    forest, joint, longer = means(bench.with_status("done"))
    assert joint.summary["forgetting"] == pytest.approx(0.0)
    records = {
        (state.cell.config.learner, state.cell.config.seed): state.folder.read_records()
        for state in bench.with_status("done")
        if state.cell.override is None
    }
    shares = [
        summarize(records["iforest", seed], joint=records["joint", seed])["forgetting"]
        for seed in (0, 1)
    ]
    assert forest.summary["forgetting"] == pytest.approx(sum(shares) / 2)
    assert "forgetting" not in longer.summary


def test_who_ends_above_joint_is_told() -> None:
    assert Difference({0: 0.02, 1: 0.03}).is_clear()
    assert not Difference({0: 0.06, 1: -0.02}).is_clear()  # within its deviation
    assert Difference({0: 0.01}).is_clear()
    assert not Difference({0: math.nan}).is_clear()


def test_the_last_accuracy_is_compared_with_that_of_joint(bench: Bench) -> None:
    forest, joint, longer = means(bench.with_status("done"))
    assert joint.over_joint.by_seed == {0: 0.0, 1: 0.0}
    ends = {row.learner: row.summary["holdout_all"] for row in (forest, joint)}
    assert forest.over_joint.mean == pytest.approx(ends["iforest"] - ends["joint"])
    assert math.isnan(longer.over_joint.mean)
