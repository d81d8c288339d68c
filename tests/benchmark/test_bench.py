"""Benchmarks that are run, stopped, killed and gone on with, on every engine."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import Bench, Grid, run_cell
from cilf.benchmark.engines import Ended, Event, LocalEngine, Lost, RayEngine, Started
from cilf.benchmark.engines.on_ray import BEYOND_THIS_MACHINE
from cilf.benchmark.job import Job, run_job
from cilf.benchmark.run_time import RunTime
from cilf.errors import BadConfig, BadInput

QUICK = {"n_estimators": 8, "k_max": 3}
SMALL = {"n_windows": 2, "window_size": 8}
PATIENCE = 240.0  # seconds until something that does not come is given up

# Waits in its second update until a file is there: time enough to kill it in the middle of a run.
SLOW = """\
import os, time
from pathlib import Path
from cilf.learners import IForest

class Slow(IForest):
    name = "slow"

    def __init__(self, *, seed=0, n_estimators=8, k_max=3, gate=""):
        super().__init__(seed=seed, n_estimators=n_estimators, k_max=k_max)
        self.gate = gate

    def _update(self, X, y, n_classes):
        gate = Path(self.gate)
        if self._n_updates == 1 and not gate.exists():
            (gate.parent / f"{os.getpid()}.waits").touch()
            while not gate.exists():
                time.sleep(0.02)
        super()._update(X, y, n_classes)
"""
# Fails, or kills its process, until it is mended.
BROKEN = """\
import os
from pathlib import Path
from cilf.learners import IForest

class Broken(IForest):
    name = "broken"

    def __init__(self, *, seed=0, n_estimators=8, k_max=3, dies=False, mended=""):
        super().__init__(seed=seed, n_estimators=n_estimators, k_max=k_max)
        self.dies, self.mended = dies, mended

    def _update(self, X, y, n_classes):
        if not Path(self.mended).is_file():
            print("about to break")
            if self.dies:
                os._exit(3)
            raise ValueError("broken\\nin two")
        super()._update(X, y, n_classes)
"""


def grid(**changes: Any) -> Grid:
    plain = {
        "learner": "iforest", "data": "digits", "seed": [0, 1], "stream": SMALL,
        "parameters": {"iforest": QUICK},
    }  # fmt: skip
    return Grid.of(plain | changes)


def own_grid(file: Path, text: str, name: str, parameters: dict[str, Any], **changes: Any) -> Grid:
    file.write_text(text, encoding="utf-8")
    learner = f"{file}:{name}"
    learners = ["iforest", learner] if name == "Broken" else [learner]
    both = {"iforest": QUICK, learner: parameters}
    used = {name: both[name] for name in learners}
    return grid(**({"learner": learners, "parameters": used} | changes))


@pytest.fixture
def slow(tmp_path: Path) -> tuple[Grid, Path]:
    """Two cells that wait after their first window, and the file that lets them go on."""
    gate = tmp_path / "gate"
    made = own_grid(
        tmp_path / "slow.py", SLOW, "Slow", {"gate": str(gate)}, stream=SMALL | {"n_windows": 3}
    )
    return made, gate


def waiting(gate: Path) -> list[int]:
    """The processes that wait, or waited, at the gate."""
    return sorted(int(path.stem) for path in gate.parent.glob("*.waits"))


def until(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < deadline, "given up waiting"
        time.sleep(0.02)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Something is done beside the benchmark, which has to end well too."""
    problems: list[BaseException] = []

    def watched() -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - raised where it is seen
            problems.append(problem)

    thread = threading.Thread(target=watched)
    thread.start()
    yield
    thread.join()
    assert problems == []


class InThisProcess:
    """An engine for tests in which it does not matter where cells run."""

    n_slots = 1

    def check(self) -> None:
        pass

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        for job in jobs:
            yield Started(job)
            yield Ended(job, run_job(job))


def run(made: Grid, out: Path, n_workers: int | None = None) -> tuple[Bench, list[Any]]:
    bench = Bench.open(made, out)
    engine = InThisProcess() if n_workers is None else LocalEngine(n_workers)
    return bench, list(bench.run(engine))


def untimed(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """The records of each cell that is done, but for the seconds."""
    found = {}
    for state in bench.with_status("done"):
        records = [record.to_json() for record in state.folder.read_records()]
        for record in records:
            del record["seconds_detect"], record["seconds_update"]
        found[state.name] = records
    return found


def kinds(events: list[Any]) -> list[str]:
    return sorted(type(event).__name__ for event in events)


# ----------------------------------------------------------------- cells, done once


def test_cells_are_run_once_and_are_what_run_cell_makes(tmp_path: Path) -> None:
    bench, events = run(grid(), tmp_path / "out", n_workers=2)
    assert kinds(events) == ["Ended", "Ended", "Started", "Started"]
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


# ----------------------------------------------------------------- cells that fail


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
    assert kinds(events) == ["Ended", "Started"]
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


def test_a_cell_that_kills_its_process_is_given_up(tmp_path: Path) -> None:
    parameters = {"dies": True, "mended": str(tmp_path / "mended")}
    made = own_grid(tmp_path / "broken.py", BROKEN, "Broken", parameters, seed=0)
    bench, events = run(made, tmp_path / "out", n_workers=1)
    assert kinds(events).count("Lost") == 2
    (failed,) = bench.with_status("failed")
    assert failed.error is not None
    assert failed.error.startswith("its process died (exit code 3) 3 times")
    assert failed.folder.error.is_file()
    assert bench.count("done") == 1


def test_a_learner_that_changed_meanwhile_is_not_taken_for_the_other(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    made = own_grid(file, BROKEN, "Broken", {"mended": str(file)}, seed=0)
    bench = Bench.open(made, tmp_path / "out")
    state = next(s for s in bench.states.values() if "broken" in s.name)
    job = Job(state.cell.config, state.cell.key, state.folder.path, tmp_path / "lock")
    file.write_text(BROKEN + "# changed\n", encoding="utf-8")
    assert "is not what it was" in (run_job(job).error or "")


# ----------------------------------------------------------------- kills


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
    assert kinds(events) == ["Ended", "Ended", "Started", "Started"]
    assert [len(s.folder.read_run()["resumed"]) for s in bench.with_status("done")] == [1, 1]
    assert untimed(bench) == untimed(run(made, tmp_path / "whole")[0])


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, slow: tuple[Grid, Path]) -> None:
    made, gate = slow
    process = bench_process(tmp_path, made)
    until(lambda: len(waiting(gate)) == 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "stopped. 0 of 2 cells are done: the same command goes on."
    assert "Traceback" not in said
    assert not any(map(alive, waiting(gate)))
    gate.touch()
    again = bench_process(tmp_path, made, "--json")
    document = json.loads(again.communicate(timeout=PATIENCE)[0])
    assert (again.returncode, document["n_done"]) == (0, 2)


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


# ----------------------------------------------------------------- Ray


def test_a_lost_node_costs_nothing_but_time(
    tmp_path: Path, slow: tuple[Grid, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
    from ray.cluster_utils import Cluster

    # Nothing outside this machine can reach the cluster.
    monkeypatch.setenv(BEYOND_THIS_MACHINE, "0")
    monkeypatch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    made, gate = slow
    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    assert cluster.address.startswith("127.0.0.1:")
    try:
        second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")

        def lose_a_node() -> None:
            until(lambda: len(waiting(gate)) == 2)  # a cell on each node
            cluster.remove_node(second, allow_graceful=False)
            until(lambda: sum(map(alive, waiting(gate))) == 1)
            gate.touch()

        bench = Bench.open(made, tmp_path / "out")
        with meanwhile(lose_a_node):
            list(bench.run(RayEngine(address=cluster.address)))
    finally:
        cluster.shutdown()
    resumed = [state.folder.read_run().get("resumed", []) for state in bench.with_status("done")]
    assert sorted(map(len, resumed)) == [0, 1]
    assert untimed(bench) == untimed(run(made, tmp_path / "whole")[0])


def test_without_ray_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    bench = Bench.open(grid(), tmp_path / "out")
    with pytest.raises(BadConfig, match=r"needs ray: pip install 'cilf\[cluster\]'"):
        next(bench.run(RayEngine()))
    assert not (tmp_path / "out").exists()


# ----------------------------------------------------------------- what is said before


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
    assert "run.json does not read" in (failed.error or "")


@pytest.mark.parametrize("records", ["{}\n", ""])
def test_a_cell_whose_records_are_damaged_is_not_done(tmp_path: Path, records: str) -> None:
    bench, _ = run(grid(seed=0), tmp_path / "out")
    (state,) = bench.states.values()
    (state.folder.path / "records.jsonl").write_text(records, encoding="utf-8")
    again, _ = run(grid(seed=0), tmp_path / "out")
    (failed,) = again.with_status("failed")
    assert "record" in (failed.error or "")
