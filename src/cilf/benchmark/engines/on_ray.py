"""The engine "ray": cells as tasks of a Ray cluster, an existing one or one on this machine.

The folder of the benchmark has to be on a file system that all nodes share. When a node is lost,
Ray gives its cells to other nodes, which resume them after their last finished window.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cilf.benchmark.engines.events import MAX_LOSSES, Ended, Event, Started
from cilf.benchmark.job import Job, JobResult, describe_failure, run_job
from cilf.core import validation
from cilf.core.extras import optional
from cilf.core.processes import n_cores
from cilf.errors import BadConfig

# Ray reads this when it is imported: set to 0, a cluster made here is not seen from outside.
BEYOND_THIS_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PREFIX = "CILF_"  # of the environment variables that are passed on to the nodes
POLL_SECONDS = 1.0  # between two readings of the size of the cluster


class RayEngine:
    """Runs cells on a Ray cluster. ``n_slots`` is known once it is connected."""

    def __init__(
        self, n_workers: int | None = None, *, address: str | None = None, gpu_share: float = 0.0
    ) -> None:
        """
        Args:
            n_workers: The largest number of cells to run at once. None runs as many as the cluster
                has room for.
            address: The address of an existing cluster ("auto", "10.0.0.1:6379"). None starts a
                cluster on this machine for as long as the benchmark runs.
            gpu_share: The part of a GPU that each cell takes. 0.25 runs four cells on each GPU.
        """
        if n_workers is not None:
            validation.whole_number("jobs", n_workers, least=1)
        validation.number("gpu_share", gpu_share, least=0)
        self.n_workers, self.address, self.gpu_share = n_workers, address, gpu_share
        self.n_slots = n_workers or n_cores()

    def check(self) -> None:
        """Raise if Ray is not installed."""
        self._import_ray()

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""
        waiting = deque(jobs)
        running: dict[Any, Job] = {}
        with self._connect() as ray:
            self._require_gpus(ray)
            task = ray.remote(_run_there).options(
                num_cpus=1, num_gpus=self.gpu_share, max_retries=MAX_LOSSES
            )
            here, variables = str(Path.cwd()), _cilf_variables()
            try:
                while waiting or running:
                    self.n_slots = self._count_slots(ray)  # nodes come and go
                    while waiting and len(running) < self.n_slots:
                        job = waiting.popleft()
                        running[task.remote(job, here, variables)] = job
                        yield Started(job)
                    for done in ray.wait(list(running), timeout=POLL_SECONDS)[0]:
                        yield Ended(running.pop(done), _read_result(ray, done))
            finally:
                for left in running:
                    ray.cancel(left, force=True)

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        ray = self._import_ray()
        if ray.is_initialized():  # by the caller, who also ends it
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

    def _import_ray(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # usage is not reported
        if self.address is None:
            os.environ.setdefault(BEYOND_THIS_MACHINE, "0")
        return optional("ray", extra="cluster", purpose="the engine 'ray'")

    def _count_slots(self, ray: Any) -> int:
        """The number of cells that the cluster can run at once, as it is now."""
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


def _run_there(job: Job, folder: str, variables: dict[str, str]) -> JobResult:
    """Run a job on a node, in the folder in which the benchmark was started."""
    os.environ.update(variables)
    if Path(folder).is_dir():
        os.chdir(folder)
    return run_job(job)


def _cilf_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


def _read_result(ray: Any, done: Any) -> JobResult:
    try:
        result: JobResult = ray.get(done)
    except ray.exceptions.RayError as error:
        return JobResult(f"its node was lost too often ({describe_failure(error)})", 0.0)
    return result
