"""Cells as tasks of a Ray cluster: one that is there, or one on this machine.

The folder of the benchmark has to be on a file system that all nodes share. A node that is lost
takes nothing with it: Ray gives its cells to others, where they go on from their last window.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cilf.benchmark.engines.events import MOST_LOSSES, Ended, Event, Started, n_cores
from cilf.benchmark.job import Job, Outcome, in_one_line, perform
from cilf.core import validation
from cilf.core.extras import optional
from cilf.errors import BadConfig

# Ray reads this when it is imported: set to 0, a cluster made here is not seen from outside.
BEYOND_THIS_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
OURS = "CILF_"  # variables that begin so are passed on to the nodes
GLANCE = 1.0  # seconds between looks at how large the cluster is


class RayEngine:
    """A cluster; ``n_slots`` is known once it is connected to."""

    def __init__(
        self, n_workers: int | None = None, *, address: str | None = None, gpu_share: float = 0.0
    ) -> None:
        """
        Args:
            n_workers: the most cells to run at once; as many as the cluster has room for if None.
            address: of a cluster that is there ("auto", "10.0.0.1:6379"); None makes one on this
                machine for as long as the benchmark runs.
            gpu_share: part of a GPU that each cell takes; 0.25 puts four on each.
        """
        if n_workers is not None:
            validation.whole_number("jobs", n_workers, least=1)
        validation.number("gpu_share", gpu_share, least=0)
        self.n_workers, self.address, self.gpu_share = n_workers, address, gpu_share
        self.n_slots = n_workers or n_cores()

    def check(self) -> None:
        """Refuse to begin where Ray is not installed."""
        self._ray()

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""
        waiting = deque(jobs)
        running: dict[Any, Job] = {}
        with self._connected() as ray:
            self._require_gpus(ray)
            task = ray.remote(_perform_there).options(
                num_cpus=1, num_gpus=self.gpu_share, max_retries=MOST_LOSSES
            )
            here, variables = str(Path.cwd()), _our_variables()
            try:
                while waiting or running:
                    self.n_slots = self._room(ray)  # nodes come and go
                    while waiting and len(running) < self.n_slots:
                        job = waiting.popleft()
                        running[task.remote(job, here, variables)] = job
                        yield Started(job)
                    for done in ray.wait(list(running), timeout=GLANCE)[0]:
                        yield Ended(running.pop(done), _outcome(ray, done))
            finally:
                for left in running:
                    ray.cancel(left, force=True)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        ray = self._ray()
        if ray.is_initialized():  # by whoever called: theirs to end
            yield ray
            return
        own = {"address": "local", "num_cpus": self.n_slots, "include_dashboard": False}
        options = own if self.address is None else {"address": self.address}
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except ConnectionError as error:
            raise BadConfig(
                f"address is {self.address!r}: no Ray cluster answers there ({error}); start one "
                "with 'ray start --head', or leave it out to use this machine."
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()

    def _ray(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # reports go to nobody unasked
        if self.address is None:
            os.environ.setdefault(BEYOND_THIS_MACHINE, "0")
        return optional("ray", extra="cluster", purpose="the engine 'ray'")

    def _room(self, ray: Any) -> int:
        """How many cells the cluster can run at once, as it is now."""
        there = ray.cluster_resources()
        room = int(there.get("CPU", 0))
        if self.gpu_share:
            room = min(room, int(there.get("GPU", 0) / self.gpu_share))
        return max(1, min(room, self.n_workers or room))

    def _require_gpus(self, ray: Any) -> None:
        if self.gpu_share and not ray.cluster_resources().get("GPU"):
            raise BadConfig(
                f"gpu_share is {self.gpu_share:g}, but the cluster has no GPU: leave it out."
            )


def _perform_there(job: Job, folder: str, variables: dict[str, str]) -> Outcome:
    """On a node: as if it were where the benchmark was started."""
    os.environ.update(variables)
    if Path(folder).is_dir():
        os.chdir(folder)
    return perform(job)


def _our_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(OURS)}


def _outcome(ray: Any, done: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(done)
    except ray.exceptions.RayError as error:
        return Outcome(f"its node was lost too often ({in_one_line(error)})", 0.0)
    return outcome
