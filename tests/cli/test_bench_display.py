from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from cilf.benchmark import forecast
from cilf.benchmark.bench import Bench
from cilf.benchmark.engines import LocalEngine, Lost
from cilf.benchmark.grid import Grid, read_grid
from cilf.benchmark.job import Job
from cilf.benchmark.run_time import RunTime
from cilf.cli.bench_display import (
    MAX_ROWS,
    BenchDisplay,
    announce_bench,
    describe_work,
    work_to_json,
)

N_CELLS = MAX_ROWS + 2


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    grid = tmp_path / "grid.toml"
    seeds = list(range(N_CELLS))
    grid.write_text(f'learner = "iforest"\ndata = "digits"\nseed = {seeds}\n', encoding="utf-8")
    return Bench.open(read_grid(grid), tmp_path / "out")


def print_table(display: BenchDisplay) -> list[str]:
    text = io.StringIO()
    Console(width=120, file=text).print(display.make_table())
    return [line.strip() for line in text.getvalue().splitlines()]


def test_the_number_of_cells_is_announced(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    announce_bench(bench, LocalEngine(2))
    expected = f"{N_CELLS} cells, 0 of them done already; {N_CELLS} to run, 2 at once, expected"
    assert capsys.readouterr().err.startswith(expected)


def test_the_table_lists_running_cells_and_counts_the_rest(bench: Bench) -> None:
    for state in bench.states.values():
        state.status, state.since = "running", time.monotonic()
    lines = print_table(BenchDisplay(bench, LocalEngine(2), live=True))
    assert lines[0].startswith(f"0 of {N_CELLS} cells done, {N_CELLS} running, 0 failed")
    assert sum("starting" in line for line in lines) == MAX_ROWS
    assert lines[-1] == "and 2 more"


@pytest.mark.parametrize("live", [True, False])
def test_a_lost_worker_is_told_below_the_table_or_as_a_line(
    bench: Bench, capsys: pytest.CaptureFixture[str], live: bool
) -> None:
    state = next(iter(bench.states.values()))
    job = Job(state.cell.config, "key", state.folder.path, state.folder.path / "lock")
    display = BenchDisplay(bench, LocalEngine(2), live=live)
    assert len(list(display.follow([Lost(job, "out of memory")]))) == 1
    message = f"{state.name}: out of memory; another worker continues it"
    shown = print_table(display) if live else capsys.readouterr().err.splitlines()
    assert message in shown


def test_a_forecast_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "measure_speed", lambda *_: 40.0)
    grid = Grid.of({"learner": ["cilf", "iforest"], "data": "digits", "seed": [0, 1, 2]})
    bench = Bench.open(grid, tmp_path / "out")
    bench.run_time = RunTime({})
    (counts,) = describe_work(bench, LocalEngine(2))
    assert counts.endswith("expected time unknown")
    bench.forecast()
    counts, source = describe_work(bench, LocalEngine(2))
    assert counts.startswith("6 cells, 0 of them done already; 6 to run, 2 at once, expected time ")
    assert "about" in counts
    assert "auto on cpu, 8 x 8: 40 images/s" in source
    assert "Clustering, GANs" in source
    one, two = (work_to_json(bench, LocalEngine(n)) for n in (1, 2))
    assert one["expected_seconds"] == pytest.approx(2 * two["expected_seconds"])
    assert [speed["images_per_second"] for speed in two["speeds"]] == [40.0]
