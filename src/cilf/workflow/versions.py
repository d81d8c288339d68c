"""Model folders: all versions side by side, a pointer to the current one, and a log.

::

    MODEL/
      current           the number of the version in use, such as 0002
      log.jsonl         one line for each change: its time, and what it did to labels and classes
      versions/0001/    what ``learner.save`` wrote; labels.csv, the labels that it has learned
                        beyond those of its predecessor; instances.npz, the instances of an update
      lock              held by the command that changes the model

A change writes the new version under a temporary name, renames it, adds a line to the log and then
replaces ``current``. Each step is atomic, so a command that is killed leaves the model as it was or
as it should be. A log line that ``current`` does not point to does not count.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cilf.core.files import (
    PENDING,
    describe_missing,
    explain_write_errors,
    put_folder,
    replace_file,
)
from cilf.core.locks import hold_lock
from cilf.core.types import Array
from cilf.errors import BadInput
from cilf.learners import load
from cilf.learners.persistence import CURRENT, HEAD, VERSIONS, current_version, read_head
from cilf.workflow.ledger import Answer, LabelledInstances, Ledger, read_answers, read_instances

if TYPE_CHECKING:
    from cilf.learners import Learner

FORMAT = 2
LOG, LOCK, LABELS, INSTANCES = "log.jsonl", "lock", "labels.csv", "instances.npz"
OURS = frozenset({CURRENT, VERSIONS, LOG, LOCK, CURRENT + PENDING, LOG + PENDING})
FIT, UPDATE, ROLLBACK = "fit", "update", "rollback"
RENAME, MERGE, FORGET, REBUILD = "rename", "merge", "forget", "rebuild"
RENAMED, MERGED, FORGOTTEN = "renamed", "merged", "forgotten"  # what an event did to classes
CORRECTED = "corrected"  # classes all of whose labels were corrected to another one


@dataclass(frozen=True)
class Event:
    """A log entry: a command that made a version the current one.

    Attributes:
        event: "fit", "update", "rename", "merge", "forget", "rebuild" or "rollback".
        version: the version that became the current one.
        before: the version that was current before; None for the first event.
        time: the time in UTC.
        about: the origin of the labels, their number and what they changed, as JSON values.
    """

    event: str
    version: int
    before: int | None
    time: str
    about: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        own = {"event": self.event, "version": self.version, "before": self.before}
        return own | {"time": self.time, **self.about}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Event:
        own = ("event", "version", "before", "time")
        about = {name: value for name, value in plain.items() if name not in own}
        return cls(**{name: plain[name] for name in own}, about=about)

    @property
    def makes_version(self) -> bool:
        """Whether the event made a new version."""
        return self.event != ROLLBACK

    @property
    def present_names(self) -> dict[str, str]:
        """The name after the event of each class that got another one, or is part of another."""
        corrected = dict(self.about.get(CORRECTED, {}))
        return corrected | {old: corrected.get(new, new) for old, new in self.renames.items()}

    @property
    def renames(self) -> dict[str, str]:
        """The classes that somebody renamed or merged into others, with their present names."""
        return {**self.about.get(RENAMED, {}), **self.about.get(MERGED, {})}

    @property
    def forgotten(self) -> list[str]:
        """The classes that the event removed from the model."""
        return list(self.about.get(FORGOTTEN, ()))


class ModelFolder:
    """A model with all its versions; only ``add`` and ``rollback`` change it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> ModelFolder:
        """Open the model in a folder; a folder without a model with versions is refused."""
        model = cls(path)
        if not model.exists():
            if (model.path / HEAD).is_file():
                raise BadInput(
                    f"{path} holds a model without versions, as learner.save writes it: detect and "
                    "predict take it, everything else needs one that 'cilf fit' made."
                )
            missing = describe_missing(model.path, "folder")
            what = f"{path} is no model" if model.path.exists() else missing
            raise BadInput(f"{what}: name a model folder, which 'cilf fit' makes.")
        model.require_format()
        return model

    def exists(self) -> bool:
        """Whether the folder holds a version to use."""
        return (self.path / CURRENT).is_file()

    def require_format(self) -> None:
        """Refuse a model that another cilf wrote in another format."""
        version = self.events()[0].about.get("format", 1)  # the first format did not name itself
        if version != FORMAT:
            raise BadInput(
                f"{self.path} has a model of format {version!r}, this cilf reads format {FORMAT}: "
                "fit one in another folder."
            )

    # ------------------------------------------------------------- versions and history

    @property
    def id(self) -> str:
        """The identifier of the model, which it keeps when the folder is moved."""
        return str(self.events()[0].about["model_id"])

    @property
    def current(self) -> int:
        """The number of the version in use."""
        return int(current_version(self.path).name)

    def events(self) -> list[Event]:
        """The log entries that count, in order."""
        current = self.current  # read before the log, which another command writes first
        events = self._read_log()
        if events and events[-1].version != current:  # the pointer was not set, or not yet
            events.pop()
        if not events or events[-1].version != current:
            raise self._damage_error(f"{LOG} does not lead to version {current}")
        return events

    def creation(self, number: int) -> Event:
        """The event that made a version."""
        made = {event.version: event for event in self.events() if event.makes_version}
        if number not in made:
            known = ", ".join(map(str, made))
            raise BadInput(f"{self.path} has no version {number}: its versions are {known}.")
        return made[number]

    def lineage(self, number: int | None = None) -> list[Event]:
        """The fit that a version comes from, and all updates since then."""
        event = self.creation(self.current if number is None else number)
        back = [event]
        while event.event != FIT and event.before is not None:
            event = self.creation(event.before)
            back.append(event)
        return back[::-1]

    def former_names(self) -> dict[str, str]:
        """The present name of each former name of a class of the current version."""
        now: dict[str, str] = {}
        for event in self.lineage():
            now = combine_renames(now, event.renames)
            corrected = event.about.get(CORRECTED, {})
            now = {
                old: corrected.get(name, name)
                for old, name in now.items()
                if old not in corrected.values() and name not in event.forgotten
            }
        return now

    def version_path(self, number: int) -> Path:
        return self.path / VERSIONS / f"{number:04d}"

    def size(self, number: int) -> int:
        """The bytes that a version takes on disk."""
        return sum(file.stat().st_size for file in self.version_path(number).iterdir())

    def learner(self, number: int | None = None) -> Learner:
        """Load the learner of a version; of the current one if None."""
        return load(self.version_path(self.current if number is None else number))

    def classes(self, number: int) -> list[str]:
        """The classes of a version."""
        try:
            head = json.loads((self.version_path(number) / HEAD).read_text(encoding="utf-8"))
            return list(head["classes"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damage_error(f"{HEAD} of version {number} cannot be read") from error

    def labels(self, number: int) -> dict[str, str]:
        """The labels, by identity, that a version has learned beyond those of its predecessor."""
        return {answer.identity: answer.label for answer in self.answers(number)}

    def answers(self, number: int) -> list[Answer]:
        """The answers of people that a version has learned beyond those of its predecessor."""
        return read_answers(self.version_path(number) / LABELS, number)

    def instances(self, number: int) -> Array | None:
        """The instances of ``answers``, in their order; None if the version keeps none."""
        path = self.version_path(number) / INSTANCES
        return read_instances(path) if path.is_file() else None

    def ledger(self, number: int | None = None) -> Ledger:
        """The answers that stand in a version; in the current one if None."""
        ledger = Ledger()
        for event in self.lineage(number):
            ledger.rename(event.present_names)
            ledger.add(self.answers(event.version))
            ledger.forget(event.forgotten)
        return ledger

    # ------------------------------------------------------------- changes

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other commands from changing the model inside the block."""
        self.require_room()
        with hold_lock(self.path / LOCK, self.path):
            self._remove_unfinished()
            yield

    def add(
        self,
        learner: Learner,
        event: str,
        about: Mapping[str, Any],
        labelled: LabelledInstances | None = None,
    ) -> Event:
        """Add a learner as the next version and make it current; call it inside ``lock``.

        ``labelled`` are the instances that the version has learned beyond its predecessor. Those of
        an update are kept. Those of a fit can be read again from the data.
        """
        events = self.events() if self.exists() else []
        number = 1 + max((past.version for past in events), default=0)
        pending = self.path / VERSIONS / f"{number:04d}{PENDING}"
        with explain_write_errors(self.path):
            learner.save(pending)
            if labelled is None:
                labelled = LabelledInstances(np.empty((0, 1), dtype=np.uint8), [], [])
            replace_file(pending / LABELS, labelled.format_labels())
            if event == UPDATE:
                replace_file(pending / INSTANCES, labelled.pack())
            put_folder(pending, self.version_path(number))
        own: dict[str, Any] = {}
        if event == FIT:
            own = {"format": FORMAT, "model_id": self.id if events else uuid.uuid4().hex}
        about = {**own, **about, "cilf": installed_version("cilf")}
        return self._point_at(number, event, about, events)

    def rollback(self, to: int | None = None, note: str | None = None) -> Event:
        """Make an earlier version current, the predecessor if None; no version is removed."""
        with self.lock():
            current = self.current
            wanted = self.creation(current).before if to is None else to
            if wanted is None:
                raise BadInput(
                    f"{self.path} is at version {current}, the first: there is no earlier one."
                )
            self.creation(wanted)
            if wanted == current:
                raise BadInput(f"{self.path} is at version {current} already: name another one.")
            learner = self.learner(wanted)  # refuses a damaged version
            about = {"classes": learner.classes_.tolist(), "note": note}
            return self._point_at(wanted, ROLLBACK, about, self.events())

    def _point_at(
        self, number: int, event: str, about: Mapping[str, Any], past: list[Event]
    ) -> Event:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Event(event, number, past[-1].version if past else None, time, about)
        with explain_write_errors(self.path):
            self._write_log([*past, entry])
            replace_file(self.path / CURRENT, f"{number:04d}\n".encode())
        return entry

    # ------------------------------------------------------------- files

    def _read_log(self) -> list[Event]:
        try:
            lines = (self.path / LOG).read_text(encoding="utf-8").splitlines()
            return [Event.from_json(json.loads(line)) for line in lines]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damage_error(f"{LOG} cannot be read") from error

    def _write_log(self, events: list[Event]) -> None:
        lines = [json.dumps(event.to_json(), allow_nan=False) + "\n" for event in events]
        replace_file(self.path / LOG, "".join(lines).encode())

    def _remove_unfinished(self) -> None:
        """Remove versions that a killed command left behind before they became current."""
        if not self.exists() and (self.path / LOG).exists() and len(self._read_log()) > 1:
            raise self._damage_error(f"{CURRENT} is missing")
        events = self.events() if self.exists() else []
        last = max((event.version for event in events), default=0)
        versions = self.path / VERSIONS
        for path in versions.iterdir() if versions.is_dir() else ():
            name = path.name.removesuffix(PENDING)
            if name.isdecimal() and int(name) > last:
                shutil.rmtree(path)
        if events and len(events) < len(self._read_log()):
            self._write_log(events)

    def require_room(self) -> None:
        """Refuse a folder that holds anything but a model."""
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"{self.path} is a file: name a new folder for the model.")
        others = [] if not self.path.exists() else [p.name for p in self.path.iterdir()]
        others = sorted(name for name in others if name not in OURS)
        if others and not self.exists():
            raise BadInput(
                f"{self.path} holds other things ({others[0]}, ...): name a new folder for the "
                "model."
            )

    def _damage_error(self, why: str) -> BadInput:
        return BadInput(f"the model in {self.path} is damaged ({why}): restore it from a copy.")


def combine_renames(past: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Combine renames, ``{former: present}``, with newer ones.

    >>> combine_renames({"dgo": "dog"}, {"dog": "hound"})
    {'dgo': 'hound', 'dog': 'hound'}
    >>> combine_renames({"dog": "hound"}, {"hound": "dog"})
    {'hound': 'dog'}
    """
    after = {former: new.get(name, name) for former, name in past.items()} | dict(new)
    present = set(new.values())
    return {former: name for former, name in after.items() if former not in present}


@dataclass(frozen=True)
class LoadedModel:
    """A version of a model to use.

    Attributes:
        path: the folder of the version.
        instance_shape: the shape of one instance; () if instances are texts.
        id: the identifier of the model; "" if it has no versions.
        version: the number of the version; None if there are none.
        columns: the columns of the table that it was fitted on; none if it was no table.
        ledger: the labels that people gave to instances.
    """

    path: Path
    instance_shape: tuple[int, ...]
    id: str = ""
    version: int | None = None
    columns: tuple[str, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)

    @cached_property
    def learner(self) -> Learner:
        """The learner, loaded at its first use: importing what it needs takes a second."""
        return load(self.path)


def load_model(path: str | Path) -> LoadedModel:
    """Open the current version of a model, or a model without versions."""
    if not ModelFolder(path).exists() and (Path(path) / HEAD).is_file():
        return LoadedModel(Path(path), _read_shape(Path(path)))
    model = ModelFolder.open(path)
    number = model.current
    folder = model.version_path(number)
    columns = tuple(model.lineage(number)[0].about.get("columns", ()))
    shape, ledger = _read_shape(folder), model.ledger(number)
    return LoadedModel(folder, shape, model.id, number, columns, ledger)


def _read_shape(folder: Path) -> tuple[int, ...]:
    return tuple(read_head(folder)["instance_shape"])
