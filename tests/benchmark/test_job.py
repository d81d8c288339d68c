from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from cilf.benchmark import Bench
from cilf.benchmark.job import Job, run_job

from .grids import BROKEN, PATIENCE, grid, list_names, own_grid, run


def test_a_cell_that_fails_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    made = own_grid(tmp_path / "broken.py", BROKEN, "Broken", {"mended": str(mended)}, seed=0)
    bench, _ = run(made, tmp_path / "out", n_workers=1)
    (failed,) = bench.with_status("failed")
    assert failed.error == "ValueError: broken in two"
    kept = failed.folder.error.read_text(encoding="utf-8")
    assert kept.startswith("Traceback")
    assert "broken.py" in kept
    assert failed.folder.log.read_text(encoding="utf-8") == "about to break\n"
    assert [state.cell.config.learner for state in bench.with_status("done")] == ["iforest"]
    mended.touch()
    again, events = run(made, tmp_path / "out")
    assert list_names(events) == ["Ended", "Started"]
    assert (again.count("done"), again.count("failed")) == (2, 0)
    assert not again.states[failed.name].folder.error.exists()


def test_what_cannot_be_built_fails_and_its_folder_stays_free(tmp_path: Path) -> None:
    made = grid(seed=0, stream={"window_size": 500})
    for _ in range(2):
        bench, _ = run(made, tmp_path / "out")
        (failed,) = bench.with_status("failed")
        assert failed.error is not None
        assert "window_size" in failed.error
        assert failed.folder.error.is_file()


def test_a_learner_that_changed_meanwhile_is_not_taken_for_the_other(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    made = own_grid(file, BROKEN, "Broken", {"mended": str(file)}, seed=0)
    bench = Bench.open(made, tmp_path / "out")
    state = next(s for s in bench.states.values() if "broken" in s.name)
    job = Job(state.cell.config, state.cell.key, state.folder.path, tmp_path / "lock")
    file.write_text(BROKEN + "# changed\n", encoding="utf-8")
    assert "has changed since the benchmark began" in (run_job(job).error or "")


def test_two_benchmarks_never_work_on_one_cell_at_once(tmp_path: Path) -> None:
    bench = Bench.open(grid(seed=0), tmp_path / "out")
    (state,) = bench.states.values()
    lock = tmp_path / "lock"
    job = Job(state.cell.config, state.cell.key, state.folder.path, lock)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = threading.Thread(target=run_job, args=(job,))
        done.start()
        done.join(0.5)
        assert done.is_alive()
        assert not state.folder.exists()
    done.join(PATIENCE)
    assert state.folder.finished()
