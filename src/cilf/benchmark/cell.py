"""One cell of a benchmark: one learner on one stream, kept in a run folder as it goes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cilf.benchmark.config import RunConfig, first_difference
from cilf.benchmark.provenance import provenance
from cilf.core import WindowRecord
from cilf.errors import BadConfig, BadInput, CilfError
from cilf.evaluate.checkpoint import Journal
from cilf.evaluate.records import RunFolder
from cilf.evaluate.run import shown_stream, steps
from cilf.evaluate.snapshot import draw
from cilf.learners import Learner
from cilf.learners.plugins import digest_of
from cilf.query.strategies import RANDOM
from cilf.stream import Stream

# What was so in all runs before they could say it.
BEFORE = {"strategy": RANDOM, "propagate": None, "learner_digest": None}


@dataclass(frozen=True)
class Cell:
    """A config with everything it names made."""

    config: RunConfig
    learner: Learner
    stream: Stream
    dataset: dict[str, Any]  # what the stream was made from, as its describe() says it

    @classmethod
    def build(cls, config: RunConfig) -> Cell:
        dataset = config.load()
        stream = config.make_stream(dataset)
        return cls(config, config.make_learner(), stream, dataset.describe())

    def run(
        self, out: str | Path, *, resume: bool = False, overwrite: bool = False
    ) -> Iterator[WindowRecord]:
        """Run the cell and yield each record once it is safe on disk.

        Args:
            out: a new or an empty folder, or one that holds a run.
            resume: go on with the run in the folder, if there is one.
            overwrite: replace the run in the folder, if there is one.
        """
        folder = RunFolder(Path(out))
        new = self._claim(folder, resume, overwrite)
        return self._records(folder, new)

    def _records(self, folder: RunFolder, new: bool) -> Iterator[WindowRecord]:
        asking, started = self.config.asking, time.perf_counter()
        journal = self._begin(folder, new)
        yield from journal.finished
        for step in steps(journal.learner, self.stream, asking, finished=journal.finished):
            # Drawn first: what the journal calls finished has all its files.
            folder.write_drawing(step.window.index, draw(step, seed=self.config.seed))
            journal.keep(step.record)
            yield step.record
        if not folder.finished():
            folder.write_run(folder.read_run() | {"finished": _ended(started)})

    def _begin(self, folder: RunFolder, new: bool) -> Journal:
        try:
            return Journal.begin(
                folder.path, self.learner, shown_stream(self.stream, self.config.asking)
            )
        except CilfError:
            if new:  # refused before it began: the folder is free for the next try
                folder.clear()
            raise

    def _claim(self, folder: RunFolder, resume: bool, overwrite: bool) -> bool:
        """Make the folder this run's own, or say why it cannot be; whether the run is new."""
        if strangers := folder.strangers():
            raise BadInput(
                f"{folder.path} holds other things ({strangers[0]}, ...): name a new or an empty "
                "folder, or one that holds a run."
            )
        if folder.exists() and not overwrite:
            self._join(folder, resume)
            return False
        if folder.exists():
            folder.clear()
        folder.write_run(self.describe() | self._as_given() | provenance())
        return True

    def _join(self, folder: RunFolder, resume: bool) -> None:
        if not resume:
            raise BadInput(
                f"{folder.path} already holds a run: resume it (--resume), replace it "
                "(--overwrite), or name another folder."
            )
        run = RunFolder.open(folder.path).read_run()
        self._require_same(folder, run)
        folder.write_run(run | {"resumed": [*run.get("resumed", []), provenance()]})

    def _require_same(self, folder: RunFolder, run: dict[str, Any]) -> None:
        about = json.loads(json.dumps(self.describe()))
        run = BEFORE | run
        if unsaid := [name for name in about if name not in run]:
            raise BadConfig(
                f"cannot resume {folder.path}: its run.json does not say {unsaid[0]!r}, so an "
                "older cilf wrote it; replace the run (--overwrite), or name another folder."
            )
        differs = first_difference(about, {name: run[name] for name in about})
        if differs:
            name, ours, theirs = differs
            raise BadConfig(
                f"cannot resume {folder.path}: {name} is {ours!r} now and {theirs!r} in that run; "
                "give the same parameters and data, or another folder."
            )

    def describe(self) -> dict[str, Any]:
        """Everything the records depend on, but for versions and machine."""
        return self.config.resolved() | {
            "dataset": self.dataset,
            "features": self.learner.features_for(self.stream.initial.X),
            "plan": {
                "initial": list(self.stream.plan.initial),
                "windows": [_planned(self.stream, index) for index in self.stream.indices],
            },
        }

    def _as_given(self) -> dict[str, Any]:
        """What a person gave to get this run."""
        digest = digest_of(type(self.learner))
        path = {} if digest is None else {"learner_path": self.config.learner}
        return {"changes": self.config.changes()} | path


def run_cell(
    config: RunConfig, out: str | Path, *, resume: bool = False, overwrite: bool = False
) -> Iterator[WindowRecord]:
    """Run what a config says into a folder; the arguments are those of :meth:`Cell.run`."""
    return Cell.build(config).run(out, resume=resume, overwrite=overwrite)


def _ended(started: float) -> dict[str, Any]:
    """The seconds are those since the run began, or was last resumed."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": now, "seconds": round(time.perf_counter() - started, 3)}


def _planned(stream: Stream, index: int) -> dict[str, Any]:
    window, counts = stream.plan.windows[index - 1], stream.counts(index)
    return {
        "novel": list(window.novel),
        "known": list(window.known),
        "counts": [[label, counts[label]] for label in window.classes],
    }
