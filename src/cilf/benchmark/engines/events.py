"""What an engine is, and what it says of the cells it runs."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cilf.benchmark.job import Job, Outcome

MOST_LOSSES = 3  # of one cell's worker, before the cell is taken to be the reason


@dataclass(frozen=True)
class Started:
    """A worker has the cell now."""

    job: Job


@dataclass(frozen=True)
class Lost:
    """The worker is gone; the cell goes on in another, from its last finished window."""

    job: Job
    why: str


@dataclass(frozen=True)
class Ended:
    """The cell is done, or has failed."""

    job: Job
    outcome: Outcome


Event = Started | Lost | Ended


class Engine(Protocol):
    """Runs cells."""

    def check(self) -> None:
        """Refuse to begin where it cannot work."""

    @property
    def n_slots(self) -> int:
        """How many cells can run at once."""

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""


def n_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
