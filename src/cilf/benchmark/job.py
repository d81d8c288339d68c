"""A job: one cell as a worker gets it, and how the worker runs it."""

from __future__ import annotations

import fcntl
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from cilf.benchmark.cell import run_cell
from cilf.benchmark.config import RunConfig
from cilf.benchmark.grid import cell_key
from cilf.core.files import make_folder
from cilf.errors import BadConfig, CilfError
from cilf.evaluate.records import RunFolder
from cilf.evaluate.tracking import track_records


@dataclass(frozen=True)
class Job:
    """A cell to run. Its paths are absolute, since a worker may be in another folder."""

    config: RunConfig
    key: str
    folder: Path
    lock: Path  # held by the worker that runs the cell
    trackers: tuple[str, ...] = ()
    fits: Path | None = None  # fitted learners that cells share


@dataclass(frozen=True)
class JobResult:
    """The outcome of a job."""

    error: str | None  # one line; None if the cell is done
    seconds: float


def run_job(job: Job) -> JobResult:
    """Run a cell, and resume it if it was begun.

    An error is kept in the folder with its traceback. What the cell prints goes to a log there.
    """
    started = time.perf_counter()
    try:
        with _lock_cell(job.lock):
            error = _run_with_log(job)
    except (OSError, CilfError) as problem:  # the folder itself cannot be used
        error = describe_failure(problem)
    return JobResult(error, time.perf_counter() - started)


def describe_failure(error: BaseException) -> str:
    """The type and the message of an error in one line; of our own errors, the message.

    >>> describe_failure(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    text = " ".join(str(error).split())
    return text if isinstance(error, CilfError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _run_with_log(job: Job) -> str | None:
    folder = RunFolder(job.folder)
    make_folder(folder.path)
    log = folder.log.open("a", encoding="utf-8")
    with log, redirect_stdout(log), redirect_stderr(log), one_thread():
        error = _run_to_end(job, folder)
    if not folder.log.stat().st_size:
        folder.log.unlink()
    return error


def _run_to_end(job: Job, folder: RunFolder) -> str | None:
    try:
        _require_unchanged(job)
        records = run_cell(job.config, folder.path, resume=True, fits=job.fits)
        for _ in track_records(records, folder, job.trackers):
            pass
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a learner may raise
        folder.error.write_text(traceback.format_exc(), encoding="utf-8")
        return describe_failure(error)
    folder.error.unlink(missing_ok=True)
    return None


def _require_unchanged(job: Job) -> None:
    if cell_key(job.config) != job.key:
        raise BadConfig(
            f"{job.config.learner} has changed since the benchmark began, or another "
            "version of cilf runs here: start the benchmark again."
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread inside the block, so that results do not depend on the machine."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _lock_cell(lock: Path) -> Iterator[None]:
    """Hold the lock of a cell inside the block. A process that dies releases it."""
    make_folder(lock.parent)
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
