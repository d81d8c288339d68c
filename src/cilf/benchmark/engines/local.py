"""The engine "local": worker processes on this machine with one thread each.

Workers are spawned, never forked: torch's threads do not survive a fork. A worker lives until no
cell is left, so that it imports torch once. If it dies, another worker resumes its cell.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from cilf.benchmark.engines.events import MAX_LOSSES, Ended, Event, Lost, Started
from cilf.benchmark.job import Job, JobResult, run_job
from cilf.core import validation
from cilf.core.processes import describe_exit, environment, follow_parent, n_cores

STOP_SECONDS = 5.0  # until a worker that does not stop is killed
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalEngine:
    """Runs cells in worker processes on this machine.

    Args:
        n_workers: The number of processes. None takes the number of cores.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None:
            validation.whole_number("jobs", n_workers, least=1)
        self.n_slots = n_workers or n_cores()

    def check(self) -> None:
        """Do nothing: this engine runs everywhere."""

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""
        waiting, losses = deque(jobs), Counter[str]()
        workers: list[_Worker] = []
        try:
            while waiting or any(worker.job for worker in workers):
                yield from self._hand_out(waiting, workers)
                for worker in _wait_for_reports(workers):
                    yield _handle_report(worker, waiting, losses)
                workers = [worker for worker in workers if worker.alive]
        finally:
            for worker in workers:
                worker.stop()

    def _hand_out(self, waiting: deque[Job], workers: list[_Worker]) -> Iterator[Event]:
        idle = [worker for worker in workers if not worker.job]
        while waiting and (idle or len(workers) < self.n_slots):
            if not idle:
                workers.append(_Worker.start())
                idle.append(workers[-1])
            job = waiting.popleft()
            idle.pop().give(job)
            yield Started(job)


@dataclass
class _Worker:
    process: BaseProcess
    line: Connection  # to the process: jobs go out, outcomes come in
    job: Job | None = None
    alive: bool = True

    @classmethod
    def start(cls) -> _Worker:
        context = multiprocessing.get_context("spawn")
        line, theirs = context.Pipe()
        process = context.Process(target=_run_worker, args=(theirs,), daemon=True)
        with environment(dict.fromkeys(THREADS, "1")):
            process.start()
        theirs.close()  # or the line would not break when the process dies
        return cls(process, line)

    def give(self, job: Job) -> None:
        self.job = job
        with suppress(OSError):  # it died while idle, which the wait for its report will show
            self.line.send(job)

    def stop(self) -> None:
        """End the process. Finished windows are on disk."""
        self.line.close()
        self.process.terminate()
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _wait_for_reports(workers: list[_Worker]) -> list[_Worker]:
    """Wait for the workers that have ended their cell, or died; at least one."""
    by_line: dict[Any, _Worker] = {worker.line: worker for worker in workers if worker.job}
    return [by_line[line] for line in wait(list(by_line))]


def _handle_report(worker: _Worker, waiting: deque[Job], losses: Counter[str]) -> Event:
    job = worker.job
    assert job is not None  # only workers with a job are waited for
    try:
        result: JobResult = worker.line.recv()
    except (EOFError, OSError):
        return _handle_loss(worker, job, waiting, losses)
    worker.job = None
    return Ended(job, result)


def _handle_loss(worker: _Worker, job: Job, waiting: deque[Job], losses: Counter[str]) -> Event:
    worker.job, worker.alive = None, False
    worker.stop()
    why = f"its process died ({describe_exit(worker.process.exitcode)})"
    losses[job.key] += 1
    if losses[job.key] < MAX_LOSSES:
        waiting.appendleft(job)
        return Lost(job, why)
    error = f"{why} {MAX_LOSSES} times, perhaps for want of memory: run fewer at once (--jobs)"
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "error.txt").write_text(f"{error}; there is no traceback.\n", encoding="utf-8")
    return Ended(job, JobResult(error, 0.0))


# ----------------------------------------------------------------- in the worker process


def _run_worker(line: Connection) -> None:
    follow_parent()  # or the next benchmark would meet this worker
    while True:
        try:
            job: Job = line.recv()
        except EOFError:
            return
        line.send(run_job(job))
