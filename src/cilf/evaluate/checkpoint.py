"""What a run has done so far, kept on disk so that a kill costs at most the window in progress.

A finished window is first appended to the records; then the learner is saved under the number
of windows behind it (``checkpoint/000`` after fitting, ``001`` after the first window, ...), and
only then is the one before removed. So the newest whole checkpoint says how far the run is, and
records beyond it are of a window that has to be done again.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cilf.core import WindowRecord
from cilf.errors import BadConfig, BadInput
from cilf.evaluate.records import RunFolder
from cilf.learners import Learner, load, persistence
from cilf.stream import Stream


@dataclass
class Journal:
    """A run in progress.

    Attributes:
        folder: where it is kept.
        learner: as it is after the finished windows.
        finished: the records that were there when the journal was opened.
    """

    folder: RunFolder
    learner: Learner
    finished: list[WindowRecord]

    @classmethod
    def begin(cls, folder: Path, learner: Learner, stream: Stream) -> Journal:
        """Go on with what the folder holds, or else fit the learner on the start of the stream."""
        run = RunFolder(folder)
        newest = _newest(run.checkpoint)
        if newest is not None:
            return cls._go_on(run, newest, learner)
        if run.read_records():
            raise BadInput(
                f"{folder} holds records but no checkpoint to go on from: start the run again in "
                "a new folder."
            )
        learner.fit(*stream.initial)
        run.write_records([])
        _save(run.checkpoint, learner, 0)
        return cls(run, learner, [])

    @classmethod
    def _go_on(cls, run: RunFolder, checkpoint: Path, learner: Learner) -> Journal:
        n_done = int(checkpoint.name)
        finished = run.read_records()[:n_done]
        if len(finished) < n_done:
            raise BadInput(
                f"{run.path} has {len(finished)} records, but a checkpoint after {n_done} windows: "
                "its records.jsonl was changed; start the run again in a new folder."
            )
        restored = _restored(checkpoint, learner)
        run.write_records(finished)
        return cls(run, restored, finished)

    def keep(self, record: WindowRecord) -> None:
        """Remember that the learner, as it is now, has finished this window."""
        self.folder.append_record(record)
        _save(self.folder.checkpoint, self.learner, record.window)


def _save(checkpoints: Path, learner: Learner, n_done: int) -> None:
    newest = checkpoints / f"{n_done:03d}"
    learner.save(newest)
    for older in _numbered(checkpoints):
        if older != newest:
            shutil.rmtree(older)


def _newest(checkpoints: Path) -> Path | None:
    """The last checkpoint that is whole: a model's description is written when all else is."""
    whole = [path for path in _numbered(checkpoints) if (path / persistence.HEAD).is_file()]
    return max(whole, key=lambda path: int(path.name), default=None)


def _numbered(checkpoints: Path) -> list[Path]:
    found = checkpoints.iterdir() if checkpoints.is_dir() else ()
    return [path for path in found if path.name.isdecimal()]


def _restored(checkpoint: Path, learner: Learner) -> Learner:
    """The learner of the checkpoint, if it is of the same kind and has the same parameters."""
    made_by = persistence.read(checkpoint)[0]["learner"]
    if made_by != learner.name:
        raise BadConfig(
            f"{checkpoint} is of learner {made_by!r}, not {learner.name!r}: resume with that one, "
            "or start in a new folder."
        )
    wanted = learner.get_params()
    own = {name: value for name, value in wanted.items() if callable(value)}
    restored = load(checkpoint, learner=type(learner), **own)
    for name, value in restored.get_params().items():
        if value != _as_stored(wanted[name]):
            raise BadConfig(
                f"{name} is {wanted[name]!r}, but {value!r} in {checkpoint}: resume with the same "
                "parameters, or start in a new folder."
            )
    return restored


def _as_stored(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
