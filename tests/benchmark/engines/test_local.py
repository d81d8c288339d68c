"""Real worker processes that are really killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cilf.benchmark import Grid
from cilf.benchmark.engines import Lost

from ..grids import (
    BROKEN,
    PATIENCE,
    alive,
    list_names,
    meanwhile,
    own_grid,
    run,
    until,
    untimed,
    waiting,
)


def test_workers_have_one_thread_and_leave_nothing_on_the_screen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = own_grid(
        tmp_path / "talks.py",
        "import os\nimport torch\nfrom cilf.learners import IForest\n"
        "class Talks(IForest):\n    name = 'talks'\n"
        "    def _fit(self, X, y):\n"
        "        print('threads', torch.get_num_threads(), os.environ['OMP_NUM_THREADS'])\n"
        "        super()._fit(X, y)\n",
        "Talks", {}, seed=0,
    )  # fmt: skip
    bench, _ = run(made, tmp_path / "out", n_workers=1)
    (state,) = bench.with_status("done")
    assert state.folder.log.read_text(encoding="utf-8") == "threads 1 1\n"
    assert capfd.readouterr() == ("", "")


def test_a_cell_that_kills_its_process_is_given_up(tmp_path: Path) -> None:
    parameters = {"dies": True, "mended": str(tmp_path / "mended")}
    made = own_grid(tmp_path / "broken.py", BROKEN, "Broken", parameters, seed=0)
    bench, events = run(made, tmp_path / "out", n_workers=1)
    assert list_names(events).count("Lost") == 2
    (failed,) = bench.with_status("failed")
    assert failed.error is not None
    assert failed.error.startswith("its process died (exit code 3) 3 times")
    assert failed.folder.error.is_file()
    assert bench.count("done") == 1


def test_a_killed_worker_costs_a_window_and_no_other_cell(
    tmp_path: Path, slow: tuple[Grid, Path]
) -> None:
    made, gate = slow

    def kill_one() -> None:
        until(lambda: len(waiting(gate)) == 2)
        os.kill(waiting(gate)[0], signal.SIGKILL)
        until(lambda: len(waiting(gate)) == 3)  # the cell is back where it was
        gate.touch()

    with meanwhile(kill_one):
        bench, events = run(made, tmp_path / "out", n_workers=2)
    (lost,) = (event for event in events if isinstance(event, Lost))
    assert lost.why == "its process died (SIGKILL)"
    resumed = [state.folder.read_run().get("resumed", []) for state in bench.with_status("done")]
    assert sorted(map(len, resumed)) == [0, 1]
    assert untimed(bench) == untimed(run(made, tmp_path / "whole")[0])


def bench_process(tmp_path: Path, made: Grid, *options: str) -> subprocess.Popen[str]:
    (learner,) = made.learner
    path = tmp_path / "grid.toml"
    path.write_text(
        f"learner = {learner!r}\ndata = 'digits'\nseed = [0, 1]\n"
        f"[stream]\nn_windows = 3\nwindow_size = 8\n"
        f"[parameters.{learner!r}]\ngate = {made.parameters[learner]['gate']!r}\n",
        encoding="utf-8",
    )
    # A background job may be started with interrupts ignored: have them on in any case.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from cilf.cli import main; main()"
    )
    arguments = ["bench", str(path), "--out", str(tmp_path / "out"), "--jobs", "2", *options]
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_a_killed_benchmark_takes_its_workers_along_and_goes_on(
    tmp_path: Path, slow: tuple[Grid, Path]
) -> None:
    made, gate = slow
    process = bench_process(tmp_path, made)
    until(lambda: len(waiting(gate)) == 2)
    process.kill()
    process.communicate(timeout=PATIENCE)
    until(lambda: not any(map(alive, waiting(gate))))
    gate.touch()
    bench, events = run(made, tmp_path / "out")
    assert list_names(events) == ["Ended", "Ended", "Started", "Started"]
    assert [len(s.folder.read_run()["resumed"]) for s in bench.with_status("done")] == [1, 1]
    assert untimed(bench) == untimed(run(made, tmp_path / "whole")[0])


def test_ctrl_c_says_how_to_continue(tmp_path: Path, slow: tuple[Grid, Path]) -> None:
    made, gate = slow
    process = bench_process(tmp_path, made)
    until(lambda: len(waiting(gate)) == 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "stopped. 0 of 2 cells are done: the same command continues."
    assert "Traceback" not in said
    assert not any(map(alive, waiting(gate)))
    gate.touch()
    again = bench_process(tmp_path, made, "--json")
    document = json.loads(again.communicate(timeout=PATIENCE)[0])
    assert (again.returncode, document["n_done"]) == (0, 2)
