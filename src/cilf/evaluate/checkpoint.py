"""Checkpoints: what a run keeps on disk so that a kill costs at most the window in progress.

A finished window is first appended to the records. Then the learner is saved under the number of
finished windows (``checkpoint/000`` after fitting, ``001`` after the first window, ...), and only
then is the checkpoint before it removed. So the newest whole checkpoint says how far the run is. A
record beyond it is of a window that has to be done again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cilf.core import WindowRecord
from cilf.core.files import make_folder
from cilf.errors import BadConfig, BadInput
from cilf.evaluate.records import RunFolder
from cilf.learners import Learner, load, persistence
from cilf.nn.pretrained import is_users_own
from cilf.stream import Stream


@dataclass
class Checkpoint:
    """The state of a run.

    Attributes:
        folder: The folder of the run.
        learner: The learner after the finished windows.
        finished: The records of the windows that were finished when the checkpoint was opened.
    """

    folder: RunFolder
    learner: Learner
    finished: list[WindowRecord]

    @classmethod
    def open(
        cls, folder: RunFolder, learner: Learner, stream: Stream, fitted: Path | None = None
    ) -> Checkpoint:
        """Read the newest checkpoint, or else fit the learner on the start of the stream.

        ``fitted`` is a place that runs with the same learner and start share: the first of them
        puts the fitted learner there, and the others read it.
        """
        newest = find_newest(folder)
        if newest is not None:
            return cls._read(folder, newest, learner)
        if folder.read_records():
            raise BadInput(
                f"{folder.path} holds records but no checkpoint to resume from: start the run "
                "again in a new folder."
            )
        shares = fitted is not None and is_model(fitted)
        learner = _fit_once(learner, stream, fitted)
        about = {"frozen_network": learner.frozen_network, "shared_fit": shares}
        folder.write_run(folder.read_run() | about)
        folder.write_records([])
        _save(folder.checkpoint, learner, 0)
        return cls(folder, learner, [])

    @classmethod
    def _read(cls, folder: RunFolder, newest: Path, learner: Learner) -> Checkpoint:
        n_finished = int(newest.name)
        finished = folder.read_records()[:n_finished]
        if len(finished) < n_finished:
            raise BadInput(
                f"{folder.path} has {len(finished)} records, but a checkpoint after {n_finished} "
                "windows: its records.jsonl was changed; start the run again in a new folder."
            )
        folder.write_records(finished)
        return cls(folder, _load_like(learner, newest), finished)

    def save(self, record: WindowRecord) -> None:
        """Keep the record of a finished window and the learner as it is after it."""
        self.folder.append_record(record)
        _save(self.folder.checkpoint, self.learner, record.window)


def _fit_once(learner: Learner, stream: Stream, fitted: Path | None) -> Learner:
    """Fit the learner, or read it where another run has put it."""
    if fitted is not None and is_model(fitted):
        return _load_like(learner, fitted)
    learner.fit(*stream.initial)
    if fitted is not None:
        _share(learner, fitted)
    return learner


def _share(learner: Learner, fitted: Path) -> None:
    """Put a fitted learner where others find it whole, unless another run was faster."""
    make_folder(fitted.parent)
    pending = fitted.with_name(f"{fitted.name}.{os.getpid()}")
    learner.save(pending)
    try:
        pending.rename(fitted)
    except OSError:  # it is there already
        shutil.rmtree(pending)


def _load_like(learner: Learner, model: Path) -> Learner:
    """Load a model folder as a learner like this one."""
    return load(model, learner=type(learner), **_list_own(learner))


def _list_own(learner: Learner) -> dict[str, Any]:
    """The parameters that a model file must not or cannot hold: functions, and users' networks."""
    given = learner.get_params()
    return {name: value for name, value in given.items() if callable(value) or is_users_own(value)}


def find_newest(folder: RunFolder) -> Path | None:
    """The last whole checkpoint. A model is whole once its description is written."""
    whole = [path for path in _list_checkpoints(folder.checkpoint) if is_model(path)]
    return max(whole, key=lambda path: int(path.name), default=None)


def is_model(path: Path) -> bool:
    """Whether a whole model lies in a folder."""
    return (path / persistence.HEAD).is_file()


def _save(checkpoints: Path, learner: Learner, n_finished: int) -> None:
    newest = checkpoints / f"{n_finished:03d}"
    learner.save(newest)
    for older in _list_checkpoints(checkpoints):
        if older != newest:
            shutil.rmtree(older)


def _list_checkpoints(checkpoints: Path) -> list[Path]:
    found = checkpoints.iterdir() if checkpoints.is_dir() else ()
    return [path for path in found if path.name.isdecimal()]


# ----------------------------------------------------------------- whether it is the same run


def require_same(folder: RunFolder, about: Mapping[str, Any]) -> None:
    """Refuse to resume a run whose run.json differs in anything that its records depend on."""
    run = RunFolder.open(folder.path).read_run()
    now = json.loads(json.dumps(about))
    difference = first_difference(now, {name: run.get(name) for name in now})
    if difference:
        name, ours, theirs = difference
        raise BadConfig(
            f"cannot resume {folder.path}: {name} is {ours!r} now and {theirs!r} in that run; "
            "give the same parameters and data, or another folder."
        )


def first_difference(
    here: Mapping[str, Any], there: Mapping[str, Any], within: str = ""
) -> tuple[str, Any, Any] | None:
    """The first name under which two nested mappings hold different values, and both values.

    >>> first_difference({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ('b.c', 2, 3)
    """
    for name in dict.fromkeys([*here, *there]):
        ours, theirs = here.get(name), there.get(name)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            found = first_difference(ours, theirs, f"{within}{name}.")
            if found:
                return found
        elif ours != theirs or (name == "query" and type(ours) is not type(theirs)):
            return within + name, ours, theirs  # a query of 1 is one label, a query of 1.0 is all
    return None
