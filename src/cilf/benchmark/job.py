"""One cell as a worker gets it, and what the worker does with it."""

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
from cilf.evaluate.tensorboard import logged


@dataclass(frozen=True)
class Job:
    """A cell to run; paths are absolute, since a worker may be elsewhere."""

    config: RunConfig
    key: str
    folder: Path
    lock: Path  # held while somebody works on the cell
    tensorboard: bool = False


@dataclass(frozen=True)
class Outcome:
    """How it ended."""

    error: str | None  # in one line; None if all went well
    seconds: float


def perform(job: Job) -> Outcome:
    """Run a cell to its end, or to its error, which is kept in the folder with its traceback.

    What is there already is gone on with. Nothing is printed: it goes to a log in the folder.
    """
    started = time.perf_counter()
    try:
        with _held(job.lock):
            error = _performed(job)
    except (OSError, CilfError) as problem:  # of the folder itself
        error = in_one_line(problem)
    return Outcome(error, time.perf_counter() - started)


def in_one_line(error: BaseException) -> str:
    """
    >>> in_one_line(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    text = " ".join(str(error).split())
    return text if isinstance(error, CilfError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _performed(job: Job) -> str | None:
    folder = RunFolder(job.folder)
    make_folder(folder.path)
    log = folder.log.open("a", encoding="utf-8")
    with log, redirect_stdout(log), redirect_stderr(log), one_thread():
        error = _error_of(job, folder)
    if not folder.log.stat().st_size:
        folder.log.unlink()
    return error


def _error_of(job: Job, folder: RunFolder) -> str | None:
    try:
        _require_unchanged(job)
        records = run_cell(job.config, folder.path, resume=True)
        for _ in logged(records, folder.tensorboard) if job.tensorboard else records:
            pass
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a learner may raise
        folder.error.write_text(traceback.format_exc(), encoding="utf-8")
        return in_one_line(error)
    folder.error.unlink(missing_ok=True)
    return None


def _require_unchanged(job: Job) -> None:
    if cell_key(job.config) != job.key:
        raise BadConfig(
            f"{job.config.learner} is not what it was when the benchmark began, or another "
            "version of cilf runs here: start the benchmark again."
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything inside computes on one thread: results then do not depend on the machine."""
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
def _held(lock: Path) -> Iterator[None]:
    """Wait until nobody else works on the cell; a process that dies lets go by itself."""
    make_folder(lock.parent)
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
