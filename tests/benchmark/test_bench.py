from __future__ import annotations

import json
from pathlib import Path

import pytest

from cilf.benchmark import Bench, run_cell
from cilf.benchmark.engines import Ended, Started
from cilf.benchmark.run_time import RunTime
from cilf.errors import BadInput

from .grids import BROKEN, grid, list_names, own_grid, run, untimed


def test_cells_are_run_once_and_are_what_run_cell_makes(tmp_path: Path) -> None:
    bench, events = run(grid(), tmp_path / "out", n_workers=2)
    assert list_names(events) == ["Ended", "Ended", "Started", "Started"]
    assert (bench.count("done"), bench.count("waiting")) == (2, 0)
    for state in bench.states.values():
        records = list(run_cell(state.cell.config, tmp_path / "alone" / state.name))
        assert [r["na"] for r in untimed(bench)[state.name]] == [r.na for r in records]
    again, nothing = run(grid(), tmp_path / "out")
    assert (nothing, again.count("done")) == ([], 2)
    assert untimed(again) == untimed(bench)


def test_a_grid_that_grows_runs_what_is_new(tmp_path: Path) -> None:
    run(grid(seed=0), tmp_path / "out")
    bench, events = run(grid(seed=[0, 1]), tmp_path / "out")
    assert [event.job.config.seed for event in events if isinstance(event, Started)] == [1]
    assert bench.count("done") == 2
    index = json.loads((tmp_path / "out" / "grid.json").read_text(encoding="utf-8"))
    assert [cell["cell"] for cell in index["cells"]] == list(bench.states)


def test_the_time_left_is_told_from_cells_that_are_done(tmp_path: Path) -> None:
    run(grid(seed=0), tmp_path / "out")
    bench = Bench.open(grid(seed=[0, 1, 2, 3, 4]), tmp_path / "out")
    (done,) = bench.with_status("done")
    assert done.seconds is not None
    assert bench.seconds_left(1) == pytest.approx(4 * done.seconds)
    assert bench.seconds_left(2) == pytest.approx(2 * done.seconds)
    assert bench.seconds_left(100) == pytest.approx(done.seconds)


def test_a_cell_of_unknown_cost_leaves_the_time_open(tmp_path: Path) -> None:
    made = own_grid(tmp_path / "broken.py", BROKEN, "Broken", {})
    bench = Bench.open(made, tmp_path / "out")
    assert bench.seconds_left(1) is not None  # others have been measured on digits
    bench.run_time = RunTime({})
    assert bench.seconds_left(1) is None


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(BadInput, match=r"holds other things \(thesis\.tex"):
        Bench.open(grid(), tmp_path)
    with pytest.raises(BadInput, match="is a file"):
        Bench.open(grid(), tmp_path / "thesis.tex")


def test_a_damaged_cell_fails_alone(tmp_path: Path) -> None:
    bench, _ = run(grid(), tmp_path / "out")
    first = next(iter(bench.states.values()))
    (first.folder.path / "run.json").write_text("{", encoding="utf-8")
    again, events = run(grid(), tmp_path / "out")
    assert isinstance(events[-1], Ended)
    (failed,) = again.with_status("failed")
    assert (failed.name, again.count("done")) == (first.name, 1)
    assert "run.json cannot be read" in (failed.error or "")


@pytest.mark.parametrize("records", ["{}\n", ""])
def test_a_cell_whose_records_are_damaged_is_not_done(tmp_path: Path, records: str) -> None:
    bench, _ = run(grid(seed=0), tmp_path / "out")
    (state,) = bench.states.values()
    (state.folder.path / "records.jsonl").write_text(records, encoding="utf-8")
    again, _ = run(grid(seed=0), tmp_path / "out")
    (failed,) = again.with_status("failed")
    assert "record" in (failed.error or "")
