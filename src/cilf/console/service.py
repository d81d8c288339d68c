"""What people do to windows and classes, without HTTP.

States of windows are kept in memory and rebuilt from the log when they are not there. The log
decides: a change counts when it is in the log, under the next number of its stream, and whoever
comes second with the same number is told what happened in between.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cilf.console import classes as naming
from cilf.console import verbs
from cilf.console.classes import Classes
from cilf.console.cluster_split import parted
from cilf.console.gallery import Gallery
from cilf.console.state import KNOWN, OPEN, DoesNotApply, Patch, State, replayed
from cilf.console.store import (
    CLASSES,
    DONE,
    QUEUED,
    RUNNING,
    Event,
    Job,
    Store,
    Taken,
    WindowRow,
    now,
)  # fmt: skip
from cilf.errors import BadInput

MOST_OPEN = 16  # windows in memory
BUDGET = 50  # answers that a window asks for unless told otherwise
SEED = 0
ANSWERS = ("name", "into", "label", "move", "merge", "reject")  # verbs that spend the budget


class NotThere(BadInput):
    """There is no such window, job or instance."""


class Conflict(BadInput):
    """Somebody else changed the same thing first; ``happened`` says what."""

    def __init__(self, message: str, version: int, happened: Sequence[Event]) -> None:
        super().__init__(message)
        self.version, self.happened = version, list(happened)


@dataclass
class Opened:
    """A window in memory."""

    gallery: Gallery
    state: State
    undone: set[int] = field(default_factory=set)  # seq of what was taken back
    events: list[Event] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def spent(self) -> int:
        """Answers that were given and not taken back."""
        return sum(
            happened.verb in ANSWERS and happened.seq not in self.undone for happened in self.events
        )

    @property
    def taught(self) -> dict[int, str]:
        """Row -> class, of everything that has a name."""
        named = {
            number: group.name
            for number, group in self.state.groups.items()
            if group.name is not None and group.status == OPEN
        }
        rows = np.flatnonzero(np.isin(self.state.group_of, list(named)))
        return {int(row): named[int(self.state.group_of[row])] for row in rows}


T = TypeVar("T")
Act = Callable[[Opened], tuple[Patch, Mapping[str, Any]]]  # -> what changes, what people read of it


class Console:
    """A store and what people do with it."""

    def __init__(self, store: Store, model: Path, roots: Sequence[Path] | None = None) -> None:
        self.store = store
        self.model_path = model
        self.roots = None if roots is None else [root.resolve() for root in roots]
        self._opened: OrderedDict[int, Opened] = OrderedDict()
        self._figured: dict[tuple[str, int], tuple[tuple[int, ...], Any]] = {}
        self.lock = threading.RLock()

    # ------------------------------------------------------------- windows

    def folder(self, window: int) -> Path:
        return self.store.folder / "windows" / str(window)

    def add_window(self, source: str, name: str = "", budget: int = BUDGET) -> WindowRow:
        """Have new kinds looked for under a path of this machine."""
        self.require_model()
        path = self.readable("path", source)
        return self._queued(name or path.name or str(path), str(path), budget)

    def readable(self, what: str, source: str) -> Path:
        """A path of this machine that is there and may be looked at."""
        try:
            path = Path(source).expanduser()
            real, there = path.resolve(), path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            raise BadInput(f"{what}: {source[:80]!r} cannot be looked at ({error}).") from error
        if self.roots is not None and not any(real.is_relative_to(root) for root in self.roots):
            raise BadInput(f"{what}: {source!r} lies outside of what may be read (see --data).")
        if not there:
            raise BadInput(f"{what}: {source!r} is not there: check how it is written.")
        return path.absolute()

    def add_upload(self, kept: Path, name: str, budget: int = BUDGET) -> WindowRow:
        """Have new kinds looked for in files that were sent, see ``uploads``."""
        self.require_model()
        return self._queued(name or kept.name, str(kept), budget)

    def _queued(self, name: str, source: str, budget: int) -> WindowRow:
        number = self.store.add_window(name[:200], source, budget)
        self.store.add_job("detect", number)
        return self.window(number)

    def again(self, window: int) -> WindowRow:
        """Look for new kinds in the same data with the model as it is now."""
        row = self.window(window)
        self.require_model()
        return self._queued(row.name, row.source, row.budget)

    def window(self, window: int) -> WindowRow:
        row = self.store.window(window)
        if row is None:
            raise NotThere(f"window {window} is not there.")
        return row

    def set_budget(self, window: int, budget: int) -> None:
        self.window(window)
        self.store.change_window(window, budget=budget)

    def opened(self, window: int) -> Opened:
        """The window's state, up to the last change in the log."""
        with self.lock:
            if window not in self._opened:
                if self.window(window).status != DONE:
                    raise NotThere(f"window {window} is not ready: wait until it is looked at.")
                self._opened[window] = self._rebuilt(window)
                if len(self._opened) > MOST_OPEN:
                    self._opened.popitem(last=False)
            self._opened.move_to_end(window)
            found = self._opened[window]
        if self.store.last_seq(window) > found.state.version:  # written by another server
            with found.lock:
                self._catch_up(found, window)
        return found

    def figured(self, what: str, window: int, figure: Callable[[], T]) -> T:
        """Something about a window, figured out again only if it or the classes have changed.

        So that a list of many windows does not open each of them.
        """
        version = (self.store.last_seq(window), self.store.last_seq(CLASSES))
        known = self._figured.get((what, window))
        if known is None or known[0] != version:
            known = version, figure()
            self._figured[what, window] = known
        value: T = known[1]
        return value

    def n_named(self, window: int) -> tuple[int, int]:
        """How many groups of a window have a name, and how many there are."""

        def figure() -> tuple[int, int]:
            opened = self.opened(window)
            with opened.lock:
                groups = list(opened.state.groups.values())
            return sum(group.name is not None for group in groups), len(groups)

        return self.figured("named", window, figure)

    def _rebuilt(self, window: int) -> Opened:
        gallery = Gallery(self.folder(window))
        events = self.store.events(window)
        state = replayed(gallery.cluster, (Patch.from_json(event.patch) for event in events))
        return Opened(gallery, state, _undone(events), events)

    def _catch_up(self, opened: Opened, window: int) -> None:
        """Take over what another server wrote into the log."""
        for event in self.store.events(window, after=opened.state.version):
            opened.state.apply(Patch.from_json(event.patch))
            opened.events.append(event)
            if event.undoes is not None:
                opened.undone |= {event.undoes, event.seq}

    # ------------------------------------------------------------- verbs

    def name(self, window: int, groups: Sequence[int], label: str, **who: Any) -> Event:
        """Call groups by the name of a class; a name that nobody knows makes a new class."""
        key = self._key(label, who.get("person", ""))

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            return verbs.name(opened.state, groups, key), {"groups": _shown(groups), "name": label}

        return self._act(window, "name", act, groups, **who)

    def into(self, window: int, groups: Sequence[int], label: str, **who: Any) -> Event:
        """Merge groups into a class that is known already."""
        key = self.classes().key(label)
        if key is None:
            raise BadInput(f"class {label!r} is not known: name the group to make it a new one.")

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            return verbs.name(opened.state, groups, key), {"groups": _shown(groups), "name": label}

        return self._act(window, "into", act, groups, **who)

    def simple(self, window: int, verb: str, groups: Sequence[int], **who: Any) -> Event:
        """Merge, reject, skip or reopen groups."""
        change = {
            "merge": verbs.merge, "reject": verbs.reject, "skip": verbs.skip,
            "reopen": verbs.reopen,
        }[verb]  # fmt: skip

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            return change(opened.state, groups), {"groups": _shown(groups)}

        return self._act(window, verb, act, groups, **who)

    def split(
        self, window: int, group: int, rows: Sequence[int] = (), parts: int = 2, **who: Any
    ) -> Event:
        """Take these rows out of a group into one of their own, or have it parted by itself."""

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            taken: Sequence[Sequence[int]] = [rows]
            if not rows:
                if group not in opened.state.groups:
                    return verbs.split(opened.state, group, []), {}
                members = opened.state.members(group)
                taken = parted(opened.gallery.embedding, members, parts, seed=SEED)[1:]
            return verbs.split(opened.state, group, taken), {"groups": _shown([group])}

        return self._act(window, "split", act, [group], **who)

    def move(self, window: int, rows: Sequence[int], target: int | None, **who: Any) -> Event:
        """Put instances into another group; None is a new one, -1 those that are known."""

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            about = {"n": len(set(rows)), "to": None if target is None else target + 1}
            return verbs.move(opened.state, rows, target), about

        involved = [] if target in (None, KNOWN) else [target]
        return self._act(window, "move", act, involved, rows=rows, **who)

    def label(self, window: int, labels: Mapping[int, str], **who: Any) -> Event:
        """Say which class single instances are."""
        keys = {name: self._key(name, who.get("person", "")) for name in set(labels.values())}

        def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
            wanted = {row: keys[name] for row, name in labels.items()}
            about = {"n": len(labels), "names": sorted(keys)[:5]}
            return verbs.label(opened.state, wanted), about

        return self._act(window, "label", act, (), rows=list(labels), **who)

    def take(self, window: int, labels: Mapping[str, str], **who: Any) -> Event | None:
        """Take over labels by identity; None if all of them are there already."""
        opened, classes = self.opened(window), self.classes()
        row_of = opened.gallery.row_of
        unknown = [identity for identity in labels if identity not in row_of]
        if unknown:
            raise BadInput(
                f"{len(unknown)} identities are not in this window ({unknown[0][:80]!r}, ...): "
                "import labels of this window only."
            )
        with opened.lock:
            named = opened.taught
        told = {row_of[identity]: label for identity, label in labels.items()}
        fresh = {
            row: label
            for row, label in told.items()
            if row not in named or classes.display(named[row]) != label
        }
        return self.label(window, fresh, **who) if fresh else None

    def undo(
        self, window: int, seq: int | None = None, *, version: int | None = None, person: str = ""
    ) -> Event:
        """Take back one change, the last that stands if None, unless others build on it.

        The last one is refused if it came after ``version``: whoever asks has not seen it.
        """
        opened = self.opened(window)
        with opened.lock:
            self._catch_up(opened, window)
            event = _to_undo(opened, seq)
            if seq is None and version is not None and event.seq > version:
                raise Conflict(
                    "somebody else has changed something since: look at it first.",
                    opened.state.version,
                    [later for later in opened.events if later.seq > version],
                )

            def act(opened: Opened) -> tuple[Patch, Mapping[str, Any]]:
                about = {"what": event.verb, "about": dict(event.about)}
                return Patch.from_json(event.patch).reversed(), about

            return self._act(window, "undo", act, (), undoes=event.seq, person=person)

    def _act(
        self,
        window: int,
        verb: str,
        act: Act,
        groups: Sequence[int],
        *,
        rows: Sequence[int] = (),
        version: int | None = None,
        person: str = "",
        undoes: int | None = None,
    ) -> Event:
        """Change a window, if nobody has changed the same groups since ``version``."""
        opened = self.opened(window)
        with opened.lock:
            for _ in range(3):
                self._require_unchanged(opened, groups, rows, version)
                patch, about = act(opened)
                seq = opened.state.version + 1
                event = Event(window, seq, verb, about, patch.to_json(), person, now(), undoes)
                try:
                    self._write(opened, event, patch)
                except Taken:
                    self._catch_up(opened, window)
                    continue
                return event
        raise Conflict("others are changing this window: try again.", opened.state.version, [])

    def _write(self, opened: Opened, event: Event, patch: Patch) -> None:
        """Into the log first: what is not there did not happen."""
        try:
            opened.state.check(patch)
        except DoesNotApply as error:
            later = [e for e in opened.events if e.seq > (event.undoes or 0)]
            raise Conflict(
                f"it cannot be taken back: {error}; take back what came later first.",
                opened.state.version,
                later,
            ) from error
        self.store.append(event)
        opened.state.apply(patch)
        opened.events.append(event)
        if event.undoes is not None:
            opened.undone |= {event.undoes, event.seq}

    def _require_unchanged(
        self, opened: Opened, groups: Sequence[int], rows: Sequence[int], version: int | None
    ) -> None:
        if version is None:
            return
        state = opened.state
        within = [row for row in rows if 0 <= row < len(state.group_of)]
        concerned = set(groups) | set(np.unique(state.group_of[within]).tolist()) - {KNOWN}
        changed = [group for group in concerned if state.changed.get(group, 0) > version]
        if changed:
            happened = [
                event
                for event in opened.events
                if event.seq > version and Patch.from_json(event.patch).touched & set(changed)
            ]
            raise Conflict(
                f"group {changed[0] + 1} was changed by somebody else: look at it again.",
                state.version,
                happened,
            )

    # ------------------------------------------------------------- classes

    def classes(self) -> Classes:
        model = self.model()
        renamed = [event.get("renamed", {}) for event in model["events"]]
        return Classes(model["classes"], self.store.events(CLASSES), renamed)

    def _key(self, typed: str, person: str) -> str:
        """The class of this name, which is made if there is none."""
        for _ in range(3):
            classes = self.classes()
            try:
                name = classes.checked(typed)
            except BadInput:  # another name may be in the way that nothing is called any more
                name = classes.only(self._used()).checked(typed)
            key = classes.key(name)
            if key is not None:
                return key
            patch = {"names": {name: [None, name]}}
            made = Event(
                CLASSES, classes.version + 1, naming.NEW, {"name": name}, patch, person, now()
            )
            try:
                self.store.append(made)
            except Taken:
                continue
            return name
        raise Conflict("others are changing the classes: try again.", 0, [])

    def _used(self) -> set[str]:
        """The classes that any group is called by."""

        def figure(window: int) -> set[str]:
            opened = self.opened(window)
            with opened.lock:
                return {group.name for group in opened.state.groups.values() if group.name}

        used: set[str] = set()
        for row in self.store.windows():
            if row.status == DONE:
                used |= self.figured("used", row.id, partial(figure, row.id))
        return used

    def rename(self, old: str, new: str, *, person: str = "", version: int | None = None) -> Event:
        """Call a class by another name from now on; the model does when it learns next."""
        classes = self.classes()
        patch = classes.renamed(old, new)
        if version is not None:
            later = self.store.events(CLASSES, after=version)
            happened = [e for e in later if patch["names"].keys() & e.patch.get("names", {}).keys()]
            if happened:
                text = "the class got another name from somebody else: look at it again."
                raise Conflict(text, classes.version, happened)
        about = {"old": old, "new": new}
        return self._append_classes(classes, naming.RENAME, about, patch, person)

    def undo_rename(self, *, person: str = "") -> Event:
        """Take back the last change of a class's name that stands."""
        events = self.store.events(CLASSES)
        undone = _undone(events)
        renames = [e for e in events if e.verb == naming.RENAME and e.seq not in undone]
        if not renames:
            raise BadInput("no class has got another name: there is nothing to take back.")
        last, classes = renames[-1], self.classes()
        ((key, (before, after)),) = last.patch["names"].items()
        if classes.names.get(key) != after or classes.key(before) not in (None, key):
            raise Conflict("it cannot be taken back: names have changed.", classes.version, events)
        patch = {"names": {key: [after, before]}}
        about = {"old": after, "new": before}
        return self._append_classes(classes, "undo", about, patch, person, last.seq)

    def _append_classes(
        self,
        classes: Classes,
        verb: str,
        about: Mapping[str, Any],
        patch: Mapping[str, Any],
        person: str,
        undoes: int | None = None,
    ) -> Event:
        event = Event(CLASSES, classes.version + 1, verb, about, patch, person, now(), undoes)
        try:
            self.store.append(event)
        except Taken as error:
            happened = self.store.events(CLASSES, after=classes.version)
            raise Conflict("others are changing the classes.", classes.version, happened) from error
        return event

    # ------------------------------------------------------------- the model

    def model(self) -> Mapping[str, Any]:
        """What the worker has said about the model.

        Its version, its classes (as it calls them), how many labels each has, and its events.
        """
        nothing: dict[str, Any] = {"version": None, "classes": [], "sizes": {}, "events": []}
        return nothing | (self.store.fact("model") or {})

    def require_model(self) -> None:
        if self.model()["version"] is None and not self.store.jobs(statuses=[QUEUED, RUNNING]):
            raise BadInput(
                f"there is no model yet: fit one, here or with 'cilf fit DATA --out "
                f"{self.model_path}'."
            )

    def job(self, number: int) -> Job:
        job = self.store.job(number)
        if job is None:
            raise NotThere(f"job {number} is not there.")
        return job


def _undone(events: Sequence[Event]) -> set[int]:
    undone: set[int] = set()
    for event in events:
        if event.undoes is not None:
            undone |= {event.undoes, event.seq}
    return undone


def _to_undo(opened: Opened, seq: int | None) -> Event:
    standing = [event for event in opened.events if event.seq not in opened.undone]
    if seq is not None:
        standing = [event for event in standing if event.seq == seq]
    if not standing:
        raise BadInput("there is nothing to take back.")
    return standing[-1]


def _shown(groups: Sequence[int]) -> list[int]:
    """Groups as people count them."""
    return [group + 1 for group in groups]
