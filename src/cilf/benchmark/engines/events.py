"""The protocol of engines and the events that they yield."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cilf.benchmark.job import Job, JobResult

MAX_LOSSES = 3  # lost workers after which a cell has failed


@dataclass(frozen=True)
class Started:
    """A worker has started the cell."""

    job: Job


@dataclass(frozen=True)
class Lost:
    """The worker died. Another one resumes the cell after its last finished window."""

    job: Job
    why: str


@dataclass(frozen=True)
class Ended:
    """The cell is done, or has failed."""

    job: Job
    result: JobResult


Event = Started | Lost | Ended


class Engine(Protocol):
    """Runs the cells of a benchmark."""

    def check(self) -> None:
        """Raise if the engine cannot run here."""

    @property
    def n_slots(self) -> int:
        """The number of cells that can run at once."""

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""
