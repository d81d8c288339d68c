"""Model folders: versions side by side, a pointer to the current one, a log of where they are from.

::

    MODEL/
      current           the number of the version in use, such as 0002
      log.jsonl         one line for each fit, update and rollback: when, and from which labels
      versions/0001/    what ``learner.save`` wrote, and labels.csv: what was taught, by identity
      lock              held by whoever changes the model

A change writes the new version under another name, gives it its own, adds a line to the log and
then replaces ``current``, each in one step. So whatever kills it, the model is as it was or as it
should be; what the log says beyond the pointer never came about.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.files import PENDING, make_folder, put_folder, replace_file, writing
from cilf.core.types import Array
from cilf.data.spreadsheets import format_csv, read_sheet
from cilf.errors import BadInput
from cilf.learners import Learner, load
from cilf.learners.persistence import CURRENT, HEAD, VERSIONS, current_version

LOG, LOCK, LABELS = "log.jsonl", "lock", "labels.csv"
OURS = frozenset({CURRENT, VERSIONS, LOG, LOCK, CURRENT + PENDING, LOG + PENDING})
FIT, UPDATE, ROLLBACK = "fit", "update", "rollback"


@dataclass(frozen=True)
class Event:
    """Something that made a version the current one.

    Attributes:
        event: "fit", "update" or "rollback".
        version: that is current from then on.
        before: that was current until then; None for the first.
        time: when, in UTC.
        about: where labels came from, how many, and what they changed; as JSON holds it.
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
        return self.event != ROLLBACK


@dataclass(frozen=True)
class Taught:
    """Labelled instances by identity."""

    ids: Array  # (n,)
    labels: Array  # (n,)


class ModelFolder:
    """A model with all its versions; only ``add`` and ``rollback`` change it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> ModelFolder:
        """The model in this folder; refused if there is none, or one without versions."""
        model = cls(path)
        if not model.exists():
            if (model.path / HEAD).is_file():
                raise BadInput(
                    f"{path} holds a model without versions, as learner.save writes it: detect and "
                    "predict take it, everything else needs one that 'cilf fit' made."
                )
            what = "is no model" if model.path.is_dir() else "is not there"
            raise BadInput(f"{path} {what}: name a folder that 'cilf fit' made.")
        model.events()
        return model

    def exists(self) -> bool:
        """Whether there is a version to use."""
        return (self.path / CURRENT).is_file()

    # ------------------------------------------------------------- what there is

    @property
    def id(self) -> str:
        """What tells this model from every other, wherever it is moved to."""
        return str(self.events()[0].about["model_id"])

    @property
    def current(self) -> int:
        """The number of the version in use."""
        return int(current_version(self.path).name)

    def events(self) -> list[Event]:
        """What happened to the model, in order."""
        current = self.current  # read first: somebody may add to the log, and then set it
        events = self._logged()
        if events and events[-1].version != current:  # the pointer is not set yet, or never will be
            events.pop()
        if not events or events[-1].version != current:
            raise self._damaged(f"{LOG} does not lead to version {current}")
        return events

    def made_by(self, number: int) -> Event:
        """What made a version."""
        made = {event.version: event for event in self.events() if event.makes_version}
        if number not in made:
            known = ", ".join(map(str, made))
            raise BadInput(f"{self.path} has no version {number}: its versions are {known}.")
        return made[number]

    def lineage(self, number: int | None = None) -> list[Event]:
        """The fit that a version comes from, and every update since."""
        event = self.made_by(self.current if number is None else number)
        back = [event]
        while event.event != FIT and event.before is not None:
            event = self.made_by(event.before)
            back.append(event)
        return back[::-1]

    def former_names(self) -> dict[str, str]:
        """Names that classes of the current version had before -> what they are called now."""
        now: dict[str, str] = {}
        for event in self.lineage():
            now = renamed(now, event.about.get("renamed", {}))
        return now

    def version_path(self, number: int) -> Path:
        return self.path / VERSIONS / f"{number:04d}"

    def size(self, number: int) -> int:
        """Bytes that a version takes on disk."""
        return sum(file.stat().st_size for file in self.version_path(number).iterdir())

    def learner(self, number: int | None = None) -> Learner:
        """The learner of a version, the current one if None."""
        return load(self.version_path(self.current if number is None else number))

    def taught(self, number: int) -> Taught:
        """What a version was taught beyond the one it comes from."""
        rows = [row.cells for row in read_sheet(self.version_path(number) / LABELS).rows]
        return Taught(
            ids=_texts(row["identity"] for row in rows),
            labels=_texts(row["label"] for row in rows),
        )

    # ------------------------------------------------------------- what changes it

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep everybody else from changing the model inside the block."""
        self.require_room()
        make_folder(self.path)
        with writing(self.path):
            file = (self.path / LOCK).open("a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"another command is changing {self.path}: wait until it is done."
                ) from None
            self._clean()
            yield

    def add(self, learner: Learner, event: str, about: Mapping[str, Any], taught: Taught) -> Event:
        """Make this learner the next version, and the current one; only inside ``changing``."""
        events = self.events() if self.exists() else []
        number = 1 + max((past.version for past in events), default=0)
        rows = zip(taught.ids.tolist(), taught.labels.tolist(), strict=True)
        pending = self.path / VERSIONS / f"{number:04d}{PENDING}"
        with writing(self.path):
            learner.save(pending)
            replace_file(pending / LABELS, format_csv(("identity", "label"), rows))
            put_folder(pending, self.version_path(number))
        model = {"model_id": self.id if events else uuid.uuid4().hex} if event == FIT else {}
        about = {**model, **about, "cilf": installed_version("cilf")}
        return self._point_at(number, event, about, events)

    def rollback(self, to: int | None = None, note: str | None = None) -> Event:
        """Go back to an earlier version, the one this comes from if None; none is removed."""
        with self.changing():
            current = self.current
            wanted = self.made_by(current).before if to is None else to
            if wanted is None:
                raise BadInput(
                    f"{self.path} is at version {current}, the first: there is no earlier one."
                )
            self.made_by(wanted)
            if wanted == current:
                raise BadInput(f"{self.path} is at version {current} already: name another one.")
            learner = self.learner(wanted)  # a damaged version is no place to go back to
            about = {"classes": learner.classes_.tolist(), "note": note}
            return self._point_at(wanted, ROLLBACK, about, self.events())

    def _point_at(
        self, number: int, event: str, about: Mapping[str, Any], past: list[Event]
    ) -> Event:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        happened = Event(event, number, past[-1].version if past else None, time, about)
        with writing(self.path):
            self._write_log([*past, happened])
            replace_file(self.path / CURRENT, f"{number:04d}\n".encode())
        return happened

    # ------------------------------------------------------------- files

    def _logged(self) -> list[Event]:
        try:
            lines = (self.path / LOG).read_text(encoding="utf-8").splitlines()
            return [Event.from_json(json.loads(line)) for line in lines]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"{LOG} does not read") from error

    def _write_log(self, events: list[Event]) -> None:
        lines = [json.dumps(event.to_json(), allow_nan=False) + "\n" for event in events]
        replace_file(self.path / LOG, "".join(lines).encode())

    def _clean(self) -> None:
        """Remove what a killed command has left: it never became current."""
        if not self.exists() and (self.path / LOG).exists() and len(self._logged()) > 1:
            raise self._damaged(f"{CURRENT} is missing")
        events = self.events() if self.exists() else []
        last = max((event.version for event in events), default=0)
        versions = self.path / VERSIONS
        for path in versions.iterdir() if versions.is_dir() else ():
            name = path.name.removesuffix(PENDING)
            if name.isdecimal() and int(name) > last:
                shutil.rmtree(path)
        if events and len(events) < len(self._logged()):
            self._write_log(events)

    def require_room(self) -> None:
        """Refuse a folder that holds anything but a model."""
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"{self.path} is a file: name a new folder for the model.")
        strangers = [] if not self.path.exists() else [p.name for p in self.path.iterdir()]
        strangers = sorted(name for name in strangers if name not in OURS)
        if strangers and not self.exists():
            raise BadInput(
                f"{self.path} holds other things ({strangers[0]}, ...): name a new folder for the "
                "model."
            )

    def _damaged(self, why: str) -> BadInput:
        return BadInput(f"the model in {self.path} is damaged ({why}): restore it from a copy.")


def renamed(now: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Former names of classes -> present ones, after these classes got other names.

    >>> renamed({"dgo": "dog"}, {"dog": "hound"})
    {'dgo': 'hound', 'dog': 'hound'}
    >>> renamed({"dog": "hound"}, {"hound": "dog"})
    {'hound': 'dog'}
    """
    after = {former: names.get(name, name) for former, name in now.items()} | dict(names)
    given = set(names.values())
    return {former: name for former, name in after.items() if former not in given}


def _texts(values: Iterator[str]) -> Array:
    return np.array(list(values), dtype=str)


@dataclass(frozen=True)
class Loaded:
    """A learner to use, and what is known about how it was fitted.

    Attributes:
        path: of the model.
        learner: of its current version.
        id: the model's; "" if it has no versions.
        version: the number of the version; None if there are none.
        reading: how the data it was fitted on were read, see ``service.reading``.
    """

    path: Path
    learner: Learner
    id: str = ""
    version: int | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)


def load_model(path: str | Path) -> Loaded:
    """The current version of a model, or a model without versions, to detect and predict with."""
    if not ModelFolder(path).exists() and (Path(path) / HEAD).is_file():
        return Loaded(Path(path), load(path))
    model = ModelFolder.open(path)
    number = model.current
    reading = model.lineage(number)[0].about.get("reading", {})
    return Loaded(Path(path), model.learner(number), model.id, number, reading)
