"""Model folders: all versions side by side, a pointer to the current one, and a log.

::

    MODEL/
      current           the number of the version in use, such as 0002, with the digests of the
                        log and of the ``model.json`` of this version
      log.jsonl         one line for each change: its time, what it did to labels and classes, and
                        the digests of the files that it made
      versions/0001/    what ``learner.save`` wrote; labels.csv, the labels that it has learned
                        beyond those of its predecessor; instances.npz, the instances of an update
      README.md         the model card, for people; see :mod:`cilf.workflow.model_card`
      lock              held by the command that changes the model

A change writes the new version under a temporary name, renames it, adds a line to the log and then
replaces ``current``. Each step is atomic, so a command that is killed leaves the model as it was or
as it should be. A log line that ``current`` does not point to does not count. The model card
follows; if a command is killed before, the next change brings it up to date.

A file is compared with its digest when it is read, so that opening a model does not read the
instances of all its versions. :meth:`ModelFolder.verify` reads everything.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cilf.core.documents import Damage, digest, read_content
from cilf.core.files import (
    PENDING,
    describe_missing,
    explain_write_errors,
    put_folder,
    replace_file,
)
from cilf.core.locks import hold_lock
from cilf.core.notices import warn_once
from cilf.core.types import Array
from cilf.errors import BadInput
from cilf.learners import load
from cilf.learners.persistence import (
    CURRENT,
    HEAD,
    VERSIONS,
    Pointer,
    damage_error,
    read_head,
    read_pointer,
    require_digest,
)
from cilf.learners.persistence import read as read_learner
from cilf.workflow.ledger import Answer, LabelledInstances, Ledger, parse_answers, unpack_instances
from cilf.workflow.model_card import CARD, CardFacts, renew_card
from cilf.workflow.model_log import (
    CORRECTED,
    FIT,
    FORMAT,
    LOG,
    ROLLBACK,
    UNSEALED,
    UPDATE,
    Event,
    Log,
    OtherFormat,
    digest_log,
    format_log,
)

if TYPE_CHECKING:
    from cilf.learners import Learner

LOCK, LABELS, INSTANCES = "lock", "labels.csv", "instances.npz"
SEALED = (HEAD, LABELS, INSTANCES)  # files of a version whose digests the log holds
OURS = frozenset(
    {CURRENT, VERSIONS, LOG, LOCK, CARD, CURRENT + PENDING, LOG + PENDING, CARD + PENDING}
)


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
        model.events()  # refuses another format, and a damaged log
        return model

    def exists(self) -> bool:
        """Whether the folder holds a version to use."""
        return (self.path / CURRENT).exists()

    # ------------------------------------------------------------- versions and history

    @property
    def id(self) -> str:
        """The identifier of the model, which it keeps when the folder is moved."""
        return str(self.events()[0].about["model_id"])

    @property
    def current(self) -> int:
        """The number of the version in use."""
        return self.events()[-1].version

    def events(self) -> list[Event]:
        """The log entries that count, in order."""
        pointer = read_pointer(self.path)  # before the log, which another command writes first
        log = self._read_log().up_to(pointer.version, pointer.log)
        if log is None:
            raise damage_error(self.path, f"{LOG} does not lead to version {pointer.version}")
        if pointer.head:
            require_digest(self.path, self.version_path(pointer.version) / HEAD, pointer.head)
        return list(log.events)

    def creation(self, number: int) -> Event:
        """The event that made a version."""
        return self._find_creation(number, self.events())

    def _find_creation(self, number: int, events: list[Event]) -> Event:
        made = {event.version: event for event in events if event.makes_version}
        if number not in made:
            known = ", ".join(map(str, made))
            raise BadInput(f"{self.path} has no version {number}: its versions are {known}.")
        return made[number]

    def lineage(self, number: int | None = None) -> list[Event]:
        """The fit that a version comes from, and all updates since then."""
        events = self.events()
        event = self._find_creation(events[-1].version if number is None else number, events)
        back = [event]
        while event.event != FIT and event.before is not None:  # a lower number: the log is checked
            event = self._find_creation(event.before, events)
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
        try:
            return sum(file.stat().st_size for file in self.version_path(number).iterdir())
        except OSError as error:
            why = f"version {number} cannot be read: {error.strerror}"
            raise damage_error(self.path, why) from error

    def learner(self, number: int | None = None) -> Learner:
        """Load the learner of a version; of the current one if None."""
        number = self.current if number is None else number
        self.require_whole(number, HEAD)
        return load(self.version_path(number))

    def classes(self, number: int) -> list[str]:
        """The classes of a version."""
        self.require_whole(number, HEAD)
        return list(read_head(self.version_path(number))["classes"])

    def labels(self, number: int) -> dict[str, str]:
        """The labels, by identity, that a version has learned beyond those of its predecessor."""
        return {answer.identity: answer.label for answer in self.answers(number)}

    def answers(self, number: int) -> list[Answer]:
        """The answers of people that a version has learned beyond those of its predecessor."""
        content = self.require_whole(number, LABELS)
        try:
            return parse_answers(content, number)
        except Damage as error:
            raise damage_error(self.path, f"{number:04d}/{error}") from error

    def instances(self, number: int) -> Array | None:
        """The instances of ``answers``, in their order; None if the version keeps none."""
        sealed = self._digests(number)
        is_kept = INSTANCES in sealed if sealed else self._file(number, INSTANCES).exists()
        if not is_kept:
            return None
        try:
            return unpack_instances(self.require_whole(number, INSTANCES))
        except Damage as error:
            raise damage_error(self.path, f"{number:04d}/{error}") from error

    def require_whole(self, number: int, name: str) -> bytes:
        """The content of a file of a version, which must be the one that was written."""
        sealed = self._digests(number)
        if sealed:
            if name not in sealed:
                raise damage_error(self.path, f"{LOG} does not name {name} of version {number}")
            return require_digest(self.path, self._file(number, name), sealed[name])
        try:
            return read_content(self._file(number, name))
        except Damage as error:
            raise damage_error(self.path, f"{number:04d}/{error}") from error

    def verify(self) -> Verification:
        """Compare every file of every version with its digest; the first damage is an error."""
        events = self.events()
        n_files, unsealed = 2, []  # the log and the pointer
        for event in events:
            if not event.makes_version:
                continue
            sealed = self._digests(event.version)
            for name in sealed or (HEAD, LABELS):
                self.require_whole(event.version, name)
                n_files += 1
            read_learner(self.version_path(event.version))  # compares the tensors too
            n_files += 1
            unsealed += [] if sealed else [event.version]
        return Verification(n_files, unsealed)

    def _file(self, number: int, name: str) -> Path:
        return self.version_path(number) / name

    def _digests(self, number: int) -> Mapping[str, str]:
        """The digest of each file of a version; none in a model of an earlier cilf."""
        key = f"{number:04d}"
        return next((event.files[key] for event in self.events() if key in event.files), {})

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
            model_id = events[0].about["model_id"] if events else uuid.uuid4().hex
            own = {"format": FORMAT, "model_id": model_id, "columns": []}
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
        before = past[-1].version if past else None
        entry = Event(event, number, before, time, about, previous=digest_log(past))
        entry = replace(entry, files=self._digest_unsealed([*past, entry]))
        content, stated = format_log([*past, entry])
        head = digest(read_content(self._file(number, HEAD)))
        with explain_write_errors(self.path):
            replace_file(self.path / LOG, content)
            replace_file(self.path / CURRENT, Pointer(f"{number:04d}", stated, head).format())
        self.write_card()
        return entry

    def write_card(self) -> None:
        """Write the model card; what people wrote outside of its marks stays.

        The model does not depend on the card: a card that cannot be written is a warning.
        """
        path = self.path / CARD
        try:
            before = read_content(path).decode() if path.exists() else ""
            replace_file(path, renew_card(before, self._collect_facts()).encode())
        except (BadInput, Damage, OSError, UnicodeDecodeError) as error:
            warn_once(f"{path} is not brought up to date ({error}): 'cilf model --card' does it")

    def _collect_facts(self) -> CardFacts:
        number = self.current
        head = read_head(self.version_path(number))
        return CardFacts(
            current=number,
            lineage=self.lineage(number),
            events=self.events(),
            classes=[str(label) for label in head["classes"]],
            n_labels=self.ledger(number).counts,
            shape=tuple(head["instance_shape"]),
        )

    def _digest_unsealed(self, events: list[Event]) -> dict[str, dict[str, str]]:
        """The digests of the files of all versions whose digests no event holds."""
        known = {key for event in events for key in event.files}
        made = [f"{event.version:04d}" for event in events if event.makes_version]
        return {
            key: {
                name: digest(read_content(self.path / VERSIONS / key / name))
                for name in SEALED
                if (self.path / VERSIONS / key / name).exists()
            }
            for key in made
            if key not in known
        }

    # ------------------------------------------------------------- files

    def _read_log(self) -> Log:
        try:
            return Log.parse(read_content(self.path / LOG))
        except Damage as error:
            raise damage_error(self.path, str(error)) from error
        except OtherFormat as error:
            raise BadInput(
                f"{self.path} has a model of format {error.format!r}, this cilf reads formats "
                f"{UNSEALED} and {FORMAT}: fit one in another folder."
            ) from error

    def _remove_unfinished(self) -> None:
        """Remove versions that a killed command left behind before they became current."""
        if not self.exists() and (self.path / LOG).exists() and len(self._read_log().events) > 1:
            raise damage_error(self.path, f"{CURRENT} is missing")
        events = self.events() if self.exists() else []
        last = max((event.version for event in events), default=0)
        versions = self.path / VERSIONS
        for path in versions.iterdir() if versions.is_dir() else ():
            name = path.name.removesuffix(PENDING)
            if name.isdecimal() and int(name) > last:
                shutil.rmtree(path)
        if events and len(events) < len(self._read_log().events):
            replace_file(self.path / LOG, format_log(events)[0])

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


@dataclass(frozen=True)
class Verification:
    """What was compared with its digest.

    Attributes:
        n_files: the number of files, all of which are as they were written.
        unsealed: the versions of an earlier cilf, which kept digests of their learners alone.
    """

    n_files: int
    unsealed: list[int]


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
    lineage = model.lineage()
    number = lineage[-1].version
    model.require_whole(number, HEAD)
    folder = model.version_path(number)
    columns = tuple(lineage[0].about["columns"])
    return LoadedModel(folder, _read_shape(folder), model.id, number, columns, model.ledger(number))


def _read_shape(folder: Path) -> tuple[int, ...]:
    return tuple(read_head(folder)["instance_shape"])
