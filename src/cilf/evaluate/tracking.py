"""Experiment tracking beside the records; ``TRACKERS`` is the table of programs.

The records are what counts. A tracker that cannot be reached is one line, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cilf.core import WindowRecord, validation
from cilf.core.notices import warn_once
from cilf.evaluate.mlflow import MlflowLog, require_mlflow
from cilf.evaluate.records import RunFolder
from cilf.evaluate.tensorboard import TensorBoardLog, require_tensorboard


class Log(Protocol):
    """A run in a tracker."""

    def add(self, record: WindowRecord) -> None: ...

    def close(self, *, is_whole: bool) -> None: ...


@dataclass(frozen=True)
class Tracker:
    """A program that tracks experiments.

    Attributes:
        require: raises if it is not installed.
        open: begins a log of the run in a folder.
    """

    require: Callable[[], None]
    open: Callable[[RunFolder], Log]


TRACKERS: dict[str, Tracker] = {
    "mlflow": Tracker(require_mlflow, MlflowLog),
    "tensorboard": Tracker(require_tensorboard, TensorBoardLog),
}


def require_trackers(names: Iterable[str]) -> None:
    """Refuse unknown trackers, and those that are not installed."""
    for name in names:
        TRACKERS[validation.one_of("tracker", name, TRACKERS)].require()


def track_records(
    records: Iterable[WindowRecord], folder: RunFolder, names: Sequence[str]
) -> Iterator[WindowRecord]:
    """Yield the same records, and log each in these trackers."""
    logs: dict[str, Log] | None = None
    is_whole = False
    try:
        for record in records:
            if logs is None:  # run.json is there now
                logs = _open_logs(folder, names)
            _try_each(logs, lambda log, record=record: log.add(record))  # type: ignore[misc]
            yield record
        is_whole = True
    finally:
        _try_each(logs or {}, lambda log: log.close(is_whole=is_whole))


def _open_logs(folder: RunFolder, names: Sequence[str]) -> dict[str, Log]:
    logs: dict[str, Log] = {}
    for name in dict.fromkeys(names):
        try:
            logs[name] = TRACKERS[name].open(folder)
        except Exception as error:  # noqa: BLE001 - whatever a tracker may raise
            _warn(name, error)
    return logs


def _try_each(logs: dict[str, Log], work: Callable[[Log], None]) -> None:
    """Do something with each log; one that fails is dropped."""
    for name, log in list(logs.items()):
        try:
            work(log)
        except Exception as error:  # noqa: BLE001 - whatever a tracker may raise
            del logs[name]
            _warn(name, error)


def _warn(name: str, error: Exception) -> None:
    lines = str(error).splitlines() or [""]
    warn_once(
        f"{name} fails ({type(error).__name__}: {lines[0][:200]}): the run goes on without it, and "
        "its records are complete"
    )
