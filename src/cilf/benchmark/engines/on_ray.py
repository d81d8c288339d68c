"""The engine "ray": cells as tasks of a Ray cluster, an existing one or one on this machine.

The folder of the benchmark has to be on a file system that all nodes share. When a node is lost,
Ray gives its cells to other nodes, which resume them after their last finished window.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cilf.benchmark.engines.events import MAX_LOSSES, Ended, Event, Started
from cilf.benchmark.job import Job, JobResult, describe_failure, run_job
from cilf.core import validation
from cilf.core.processes import n_cores
from cilf.core.ray_cluster import cilf_variables, connect, import_ray, require_address
from cilf.errors import BadConfig

PURPOSE = "the engine 'ray'"
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
        """Raise if Ray is not installed, or if no cluster can have the address."""
        require_address(self.address)
        import_ray(self.address, PURPOSE)

    def run(self, jobs: Sequence[Job]) -> Generator[Event]:
        """Run every job; one that fails does not stop the others."""
        waiting = deque(jobs)
        running: dict[Any, Job] = {}
        with self._connect() as ray:
            self._require_gpus(ray)
            task = ray.remote(_run_there).options(
                num_cpus=1, num_gpus=self.gpu_share, max_retries=MAX_LOSSES
            )
            here, variables = str(Path.cwd()), cilf_variables()
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

    def _connect(self) -> AbstractContextManager[Any]:
        return connect(self.address, self.n_slots, PURPOSE)

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


def _read_result(ray: Any, done: Any) -> JobResult:
    try:
        result: JobResult = ray.get(done)
    except ray.exceptions.RayError as error:
        return JobResult(f"its node was lost too often ({describe_failure(error)})", 0.0)
    return result
