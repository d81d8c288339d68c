"""Small grids, learners that wait or break, and what tests of benchmarks share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cilf.benchmark import Bench, Grid
from cilf.benchmark.engines import Ended, Event, LocalEngine, Started
from cilf.benchmark.job import Job, run_job

QUICK = {"n_estimators": 8, "max_samples": 60}
SMALL = {"n_windows": 2, "window_size": 8}
PATIENCE = 240.0  # seconds until something that does not come is given up

# Waits in its second update until a file is there: time enough to kill it in the middle of a run.
SLOW = """\
import os, time
from pathlib import Path
from cilf.learners import IForest

class Slow(IForest):
    name = "slow"

    def __init__(self, *, seed=0, n_estimators=8, max_samples=60, gate=""):
        super().__init__(seed=seed, n_estimators=n_estimators, max_samples=max_samples)
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

    def __init__(self, *, seed=0, n_estimators=8, max_samples=60, dies=False, mended=""):
        super().__init__(seed=seed, n_estimators=n_estimators, max_samples=max_samples)
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


def list_names(events: list[Any]) -> list[str]:
    return sorted(type(event).__name__ for event in events)
