"""One cell of a benchmark: one learner on one stream, kept in a run folder."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cilf.benchmark.config import POLICY, RunConfig
from cilf.benchmark.provenance import provenance
from cilf.core import WindowRecord
from cilf.errors import BadInput, CilfError
from cilf.evaluate.checkpoint import find_newest, require_same
from cilf.evaluate.records import RunFolder
from cilf.evaluate.run import Step, run_policy
from cilf.evaluate.snapshot import take_snapshot
from cilf.learners import Learner
from cilf.learners.plugins import get_digest
from cilf.stream import Stream


@dataclass(frozen=True)
class Cell:
    """A config with its learner and its stream."""

    config: RunConfig
    learner: Learner
    stream: Stream
    dataset: dict[str, Any]  # the description of the data set

    @classmethod
    def build(cls, config: RunConfig) -> Cell:
        dataset = config.load()
        stream = config.make_stream(dataset)
        return cls(config, config.make_learner(), stream, dataset.describe())

    def run(
        self,
        out: str | Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        fits: Path | None = None,
    ) -> Iterator[WindowRecord]:
        """Run the cell and yield each record once it is safe on disk.

        Args:
            out: A new or an empty folder, or one that holds a run.
            resume: Whether to resume the run in the folder, if there is one.
            overwrite: Whether to replace the run in the folder, if there is one.
            fits: A folder of fitted learners, which cells that start alike share.
        """
        folder = RunFolder(Path(out))
        self._require_room(folder)
        with ExitStack() as lock:
            lock.enter_context(folder.lock())
            new = self._claim(folder, resume, overwrite)
            fitted = None if fits is None else fits / self.fit_key
            return self._records(folder, new, fitted, lock.pop_all())

    @property
    def fit_key(self) -> str:
        """A hash of everything that the fitted learner depends on.

        It leaves out what happens after the fit: the protocol and the query policy. Under "self"
        labels become text before the fit, so that policy is part of it.
        """
        about = {name: value for name, value in self.describe().items() if name not in POLICY}
        policy = {"text_labels": self.config.policy.is_self}
        text = json.dumps(about | policy, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _records(
        self, folder: RunFolder, new: bool, fitted: Path | None, lock: ExitStack
    ) -> Iterator[WindowRecord]:
        with lock:
            yield from self._run_locked(folder, new, fitted)

    def _run_locked(
        self, folder: RunFolder, new: bool, fitted: Path | None
    ) -> Iterator[WindowRecord]:
        def keep(step: Step) -> None:  # first: a window that counts as finished has all its files
            folder.write_snapshot(step.window.index, take_snapshot(step, seed=self.config.seed))

        started = time.perf_counter()
        try:
            policy = self.config.policy
            yield from run_policy(self.learner, self.stream, policy, folder, keep, fitted)
        except CilfError:
            if new and find_newest(folder) is None:  # refused before it began: nothing is lost
                folder.clear()
            raise
        if not folder.finished():
            folder.write_run(folder.read_run() | {"finished": _end(started)})

    def _require_room(self, folder: RunFolder) -> None:
        if others := folder.list_other_files():
            raise BadInput(
                f"{folder.path} holds other things ({others[0]}, ...): name a new or an empty "
                "folder, or one that holds a run."
            )

    def _claim(self, folder: RunFolder, resume: bool, overwrite: bool) -> bool:
        """Make the folder this run's own, or refuse it; return whether the run is new."""
        if folder.exists() and not overwrite:
            self._resume(folder, resume)
            return False
        if folder.exists():
            folder.clear()
        folder.write_run(self.describe() | self._as_given() | provenance())
        return True

    def _resume(self, folder: RunFolder, resume: bool) -> None:
        if not resume:
            raise BadInput(
                f"{folder.path} already holds a run: resume it (--resume), replace it "
                "(--overwrite), or name another folder."
            )
        require_same(folder, self.describe())
        run = folder.read_run()
        folder.write_run(run | {"resumed": [*run.get("resumed", []), provenance()]})

    def describe(self) -> dict[str, Any]:
        """Everything the records depend on, but for versions and machine."""
        return self.config.resolve() | {
            "dataset": self.dataset,
            "features": self.learner.features_for(*self.stream.initial),
            "plan": self.stream.describe(),
        }

    def _as_given(self) -> dict[str, Any]:
        """The changes of the user, and the path of the user's own learner."""
        digest = get_digest(type(self.learner))
        path = {} if digest is None else {"learner_path": self.config.learner}
        return {"changes": self.config.changes()} | path


def run_cell(
    config: RunConfig,
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    fits: Path | None = None,
) -> Iterator[WindowRecord]:
    """Run the cell of a config; the arguments are those of :meth:`Cell.run`."""
    return Cell.build(config).run(out, resume=resume, overwrite=overwrite, fits=fits)


def _end(started: float) -> dict[str, Any]:
    """The time at the end, and the seconds since the run began or was last resumed."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": now, "seconds": round(time.perf_counter() - started, 3)}
