"""Windows, verbs and classes of a console, without HTTP.

The states of windows are in memory. They are rebuilt from the log when they are not. A change
counts once it is in the log under the next number of its stream. Whoever comes second with the same
number is told what was changed in between.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cilf.console.bodies import VerbBody
from cilf.console.classes import NEW, RENAME, Classes
from cilf.console.detections import (
    DETECTION,
    carry_over,
    changes_detection,
    detection_folder,
    find_start,
    make_again_patch,
    make_undo_patch,
    replay_window,
)
from cilf.console.gallery import Gallery
from cilf.console.origin import Origin, come_from, current_origin
from cilf.console.presence import Presence
from cilf.console.state import KNOWN, OPEN, Patch, PatchConflict, State
from cilf.console.store import (
    CLASSES,
    DONE,
    QUEUED,
    RUNNING,
    Event,
    Job,
    SeqTaken,
    Store,
    WindowRow,
    now,
)  # fmt: skip
from cilf.console.uploads import UPLOADS
from cilf.console.verbs import AGAIN, KNOWN_CLASS, UNDO, VERBS, Context, label_rows
from cilf.core.progress import report
from cilf.core.types import Ints
from cilf.errors import BadInput
from cilf.workflow.findings import PERSON

MOST_OPEN = 16  # windows in memory
MEMORY = "memory"  # folder of the store: what models keep
BUDGET = 50  # answers to a window's queries, unless a request says otherwise
MOST_ATTEMPTS = 3  # to write an event while others write too
MOST_NAMES = 5  # that the history lists of imported labels


class NotFound(BadInput):
    """There is no such window, job or instance."""


class Conflict(BadInput):
    """Somebody else changed the same thing first, in ``events``."""

    def __init__(self, message: str, version: int = 0, events: Sequence[Event] = ()) -> None:
        super().__init__(message)
        self.version, self.events = version, list(events)


@dataclass
class OpenWindow:
    """A window in memory."""

    gallery: Gallery
    state: State
    events: list[Event] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def undone(self) -> set[int]:
        """The seq of events that were undone, and of those that undid them."""
        return find_undone(self.events)

    @property
    def n_answers(self) -> int:
        """The number of answers that stand."""
        answers = {name for name, verb in VERBS.items() if verb.is_answer}
        undone = self.undone
        return sum(event.verb in answers and event.seq not in undone for event in self.events)

    @property
    def labels(self) -> dict[int, str]:
        """Row -> key of its class, for the members of named clusters."""
        named = {
            number: cluster.name
            for number, cluster in self.state.clusters.items()
            if cluster.name is not None and cluster.status == OPEN
        }
        rows = np.flatnonzero(np.isin(self.state.cluster_of, list(named)))
        return {int(row): named[int(self.state.cluster_of[row])] for row in rows}

    @property
    def start(self) -> int:
        """The seq of the event since which the detection is shown."""
        return find_start(self.events, self.undone)

    def copy(self) -> OpenWindow:
        """The window with a state and events of its own."""
        return replace(self, state=self.state.copy(), events=list(self.events))

    def add(self, event: Event, folder: Path) -> None:
        """Apply an event of the log; ``folder`` is that of the window."""
        if changes_detection(event):
            self.gallery, self.state = replay_window(folder, [*self.events, event])
        else:
            self.state.apply(Patch.from_json(event.patch))
        self.events.append(event)


@dataclass(frozen=True)
class Action:
    """The use of a verb in a request."""

    window: int
    verb: str
    body: VerbBody
    origin: Origin = field(default_factory=current_origin)


@dataclass(frozen=True)
class Change:
    """A change of a window that is to be written, and who makes it.

    Attributes:
        make_patch: computes the patch from the window as the changes before have left it.
        undoes: the seq of the event that it undoes.
    """

    window: int
    verb: str
    about: Mapping[str, Any]
    make_patch: Callable[[OpenWindow], Patch]
    body: VerbBody
    undoes: int | None = None
    origin: Origin = field(default_factory=current_origin)


T = TypeVar("T")
MakeChange = Callable[[OpenWindow], tuple[Mapping[str, Any], Patch] | None]


class Console:
    """A store and what people do with it."""

    def __init__(self, store: Store, model: Path, roots: Sequence[Path] | None = None) -> None:
        self.store = store
        self.model_path = model
        self.roots = None if roots is None else [root.resolve() for root in roots]
        self._open: OrderedDict[int, OpenWindow] = OrderedDict()
        self._known: OrderedDict[str, Gallery] = OrderedDict()
        self._values: dict[tuple[str, int], tuple[tuple[int, ...], Any]] = {}
        self._classes: tuple[Mapping[str, Any], Classes] | None = None  # of a model
        self.lock = threading.RLock()
        self.presence = Presence()

    # ------------------------------------------------------------- windows

    def folder(self, window: int) -> Path:
        return self.store.folder / "windows" / str(window)

    def add_window(self, source: str, name: str = "", budget: int = BUDGET) -> WindowRow:
        """Queue the detection of novel classes in data under a path of this machine."""
        self.require_model()
        path = self.require_readable("path", source)
        return self._queue(name or path.name or str(path), str(path), budget)

    def add_upload(self, path: Path, name: str, budget: int = BUDGET) -> WindowRow:
        """Queue the detection of novel classes in uploaded files."""
        self.require_model()
        return self._queue(name or path.name, str(path), budget)

    def detect_again(self, window: int, person: str = "") -> WindowRow:
        """Queue the detection in the same data with the current model.

        The window keeps its number, and the answers in it are carried over.
        """
        row = self.window(window)
        self.require_model()
        with self.lock:
            active = self.store.jobs(window=window, statuses=[QUEUED, RUNNING])
            if any(job.kind == "detect" for job in active):
                raise Conflict("the window is being detected already: wait until that is done.")
            if row.status == DONE:
                self.store.add_job("detect", window, again=True, person=person)
            else:
                self.store.change_window(window, status=QUEUED, facts={})
                self.store.add_job("detect", window)
        return self.window(window)

    def renew(
        self,
        window: int,
        number: int,
        facts: Mapping[str, Any],
        match: Callable[[Path], Ints],
        person: str = "",
    ) -> Event:
        """Show another detection of a window, with the answers of people in it.

        ``match`` finds the new row of each row of the detection in a folder; -1 is none.
        """
        opened = self.open(window)
        gallery = Gallery(detection_folder(self.folder(window), number))
        facts = {**facts, DETECTION: number}
        with opened.lock:
            while True:  # until nobody writes at the same time
                self._catch_up(opened, window)
                carried = carry_over(
                    opened.state, opened.gallery.cluster, gallery.cluster,
                    match(opened.gallery.folder), self._settled_keys(gallery),
                )  # fmt: skip
                patch = make_again_patch(carried, number, self.window(window).facts, facts)
                counts = {"n_labels": carried.n_labels, "n_lost": carried.n_lost}
                about = {"version": facts["version"], **counts}
                seq = opened.state.version + 1
                event = Event(window, seq, AGAIN, about, patch, person, now())
                try:
                    self.store.append(event, facts)
                except SeqTaken:
                    continue
                opened.add(event, self.folder(window))
                return event

    def _settled_keys(self, gallery: Gallery) -> dict[int, str]:
        """Row -> key of its class, for instances that the model knows from a person."""
        classes = self.classes()
        rows = np.flatnonzero(gallery.source == PERSON).tolist()
        return {row: classes.key_of_label(str(gallery.label[row])) for row in rows}

    def close(self, window: int) -> None:
        """Drop a window from memory."""
        with self.lock:
            self._open.pop(window, None)

    def _queue(self, name: str, source: str, budget: int) -> WindowRow:
        number = self.store.add_window(name[:200], source, budget)
        self.store.add_job("detect", number)
        return self.window(number)

    def require_readable(self, argument: str, source: str) -> Path:
        """The path, which exists and lies where the console may read."""
        try:
            path = Path(source).expanduser()
            real, exists = path.resolve(), path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            raise BadInput(f"{argument}: {source[:80]!r} cannot be read ({error}).") from error
        if self.roots is not None and not _is_below(real, self.roots):
            raise BadInput(f"{argument}: {source!r} lies outside of what may be read (see --data).")
        if not exists:
            raise BadInput(f"{argument}: {source!r} does not exist: check how it is written.")
        return path.absolute()

    def is_readable(self, path: Path) -> bool:
        """Whether a path lies where the console may read. Uploads may be read, too."""
        if self.roots is None:
            return True
        return _is_below(path.resolve(), [*self.roots, (self.store.folder / UPLOADS).resolve()])

    def known_gallery(self, window: int) -> Gallery | None:
        """The instances that the model of a window keeps; None if it keeps none.

        They are embedded by the version of the model that detected in the window.
        """
        name = self.window(window).facts.get("memory")
        if name is None:
            return None
        with self.lock:
            if name not in self._known:
                self._known[name] = Gallery(self.store.folder / MEMORY / name)
                if len(self._known) > MOST_OPEN:
                    self._known.popitem(last=False)
            return self._known[name]

    def window(self, window: int) -> WindowRow:
        row = self.store.window(window)
        if row is None:
            raise NotFound(f"window {window} does not exist.")
        return row

    def set_budget(self, window: int, budget: int) -> None:
        self.window(window)
        self.store.change_window(window, budget=budget)
        self.store.log("budget", window, {"budget": budget})

    def open(self, window: int) -> OpenWindow:
        """The window with all changes in the log."""
        with self.lock:
            if window not in self._open:
                if self.window(window).status != DONE:
                    raise NotFound(f"window {window} is not ready: wait until detection is done.")
                self._open[window] = self._rebuild(window)
                if len(self._open) > MOST_OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(window)
            found = self._open[window]
        if self.store.last_seq(window) > found.state.version:  # written by another server
            with found.lock:
                self._catch_up(found, window)
        return found

    def compute_once(
        self, name: str, window: int, compute: Callable[[], T], model: int | None = None
    ) -> T:
        """A value about a window, computed again only if the window or the classes have changed.

        A list of many windows need not open each of them. ``model`` is the version of the model, if
        the value depends on it.
        """
        version = (self.store.last_seq(window), self.store.last_seq(CLASSES), model or 0)
        value = self._values.get((name, window))
        if value is None or value[0] != version:
            value = self._values[name, window] = version, compute()
        result: T = value[1]
        return result

    def count_named(self, window: int) -> tuple[int, int]:
        """The number of clusters that have a name, and of all clusters."""

        def compute() -> tuple[int, int]:
            opened = self.open(window)
            with opened.lock:
                clusters = list(opened.state.clusters.values())
            return sum(cluster.name is not None for cluster in clusters), len(clusters)

        return self.compute_once("named", window, compute)

    def _rebuild(self, window: int) -> OpenWindow:
        events = self.store.events(window)
        gallery, state = replay_window(self.folder(window), events)
        return OpenWindow(gallery, state, events)

    def _catch_up(self, opened: OpenWindow, window: int) -> None:
        """Apply what another server wrote into the log."""
        for event in self.store.events(window, after=opened.state.version):
            opened.add(event, self.folder(window))

    # ------------------------------------------------------------- verbs

    def act(self, window: int, name: str, body: VerbBody) -> Event:
        """Change a window by a verb of ``VERBS``."""
        (done,) = self.act_all([Action(window, name, body)])
        if isinstance(done, Exception):
            raise done
        return done

    def act_all(self, actions: Sequence[Action]) -> list[Event | Exception]:
        """Change windows by verbs, in order. All changes are written in one transaction.

        Returns the event of each action, or why it was refused.
        """
        opened: dict[int, OpenWindow] = {}
        changes: dict[int, Change] = {}  # by the place of the action
        done: dict[int, Event | Exception] = {}
        classes = self.classes()
        for place, action in enumerate(actions):
            try:
                if action.window not in opened:
                    opened[action.window] = self.open(action.window)
                with come_from(action.origin):
                    changes[place] = self._make_change(action, classes)
            except Exception as error:  # noqa: BLE001 - the action fails, the others do not
                done[place] = error
        done |= dict(zip(changes, self._write(list(changes.values()), opened), strict=True))
        return [done[place] for place in range(len(actions))]

    def _make_change(self, action: Action, classes: Classes) -> Change:
        verb, body = VERBS[action.verb], action.body
        about, key = body.about, ""
        if "name" in about:
            find = self._known_key if verb.dialog == KNOWN_CLASS else self.make_class
            key = find(about["name"], body.person, classes)

        def make_patch(opened: OpenWindow) -> Patch:
            return verb.function(Context(opened.state, opened.gallery.embedding, key), body)

        return Change(action.window, action.verb, about, make_patch, body, origin=action.origin)

    def change(self, window: int, verb: str, make: MakeChange, person: str = "") -> Event | None:
        """Change a window as a verb does, if ``make`` finds something to change in it."""
        opened = self.open(window)
        with opened.lock:
            self._catch_up(opened, window)
            made = make(opened)
            if made is None:
                return None
            about, _ = made
            body = VerbBody(person=person)
            return self._change(window, verb, about, lambda one: _patch_of(make(one)), body)

    def import_labels(
        self, window: int, labels: Mapping[str, str], person: str = "", job: int | None = None
    ) -> Event | None:
        """Label instances by identity. Returns None if all of them have their labels already.

        A ``job`` imports its labels once, even if its worker was killed before it wrote so.
        """
        opened, classes = self.open(window), self.classes()
        with opened.lock:
            done = [e for e in opened.events if job is not None and e.about.get("job") == job]
        if done:
            return done[0]
        row_of = opened.gallery.row_of
        unknown = [identity for identity in labels if identity not in row_of]
        if unknown:
            raise BadInput(
                f"{len(unknown)} identities are not in this window ({unknown[0][:80]!r}, ...): "
                "import labels of this window only."
            )
        with opened.lock:
            present = {row: classes.display(key) for row, key in opened.labels.items()}
        fresh = {
            row_of[identity]: name
            for identity, name in labels.items()
            if present.get(row_of[identity]) != name
        }
        if not fresh:
            return None
        names, keys = dict.fromkeys(fresh.values()), {}
        for place, name in enumerate(names):
            report("classes", place, len(names))
            keys[name] = self.make_class(name, person)
        report("labels", 0, 1)
        wanted = {row: keys[name] for row, name in fresh.items()}
        about = {"n": len(fresh), "name": ", ".join(sorted(keys)[:MOST_NAMES])}
        about |= {} if job is None else {"job": job}
        return self._change(
            window, "label", about, lambda opened: label_rows(opened.state, wanted),
            VerbBody(person=person),
        )  # fmt: skip

    def undo(
        self, window: int, seq: int | None = None, *, version: int | None = None, person: str = ""
    ) -> Event:
        """Undo one change, the last that stands if ``seq`` is None.

        The last change is not undone if it came after ``version``: the person has not seen it.
        """
        opened = self.open(window)
        with opened.lock:
            self._catch_up(opened, window)
            event = _find_undoable(opened, seq)
            if seq is None and version is not None and event.seq > version:
                raise Conflict(
                    "somebody else has made a change since: check it first.",
                    opened.state.version,
                    [later for later in opened.events if later.seq > version],
                )
            if changes_detection(event):
                return self._undo_detection(opened, event, person)
            return self._change(
                window, UNDO, {"what": event.verb, "about": dict(event.about)},
                lambda _: Patch.from_json(event.patch).reverse(), VerbBody(person=person),
                undoes=event.seq,
            )  # fmt: skip

    def _undo_detection(self, opened: OpenWindow, event: Event, person: str) -> Event:
        """Show the former detection again, as it was before the event."""
        later = [one for one in opened.events if one.seq > event.seq]
        standing = [one for one in later if one.seq not in opened.undone]
        if standing:
            message = "it cannot be undone: answers came after it; undo what came later first."
            raise Conflict(message, opened.state.version, standing)
        patch, seq = make_undo_patch(event), opened.state.version + 1
        about = {"what": event.verb, "about": dict(event.about)}
        undoing = Event(event.stream, seq, UNDO, about, patch, person, now(), event.seq)
        try:
            self.store.append(undoing, patch["facts"][1])
        except SeqTaken as error:
            raise Conflict("others are changing this window: try again.", seq - 1) from error
        opened.add(undoing, self.folder(event.stream))
        return undoing

    def _change(
        self,
        window: int,
        verb: str,
        about: Mapping[str, Any],
        make_patch: Callable[[OpenWindow], Patch],
        body: VerbBody,
        undoes: int | None = None,
    ) -> Event:
        """Write a change, if nobody has changed the same clusters since the body's version."""
        change = Change(window, verb, about, make_patch, body, undoes)
        (done,) = self._write([change], {window: self.open(window)})
        if isinstance(done, Exception):
            raise done
        return done

    def _write(
        self, changes: Sequence[Change], opened: Mapping[int, OpenWindow]
    ) -> list[Event | Exception]:
        """Write changes of windows in order, in one transaction.

        Returns the event of each change, or why it was refused. Nobody sees a change in memory
        before it is on disk: changes are made on copies of the windows.
        """
        with ExitStack() as locks:
            for number in sorted(opened):  # always in this order: nobody waits in a circle
                locks.enter_context(opened[number].lock)
            for _ in range(MOST_ATTEMPTS):
                drafts = {number: window.copy() for number, window in opened.items()}
                done = [_try_change(drafts[change.window], change) for change in changes]
                events = [
                    (event, change.origin)
                    for event, change in zip(done, changes, strict=True)
                    if isinstance(event, Event)
                ]
                try:
                    if events:
                        self.store.append_all(events)
                except SeqTaken:
                    for number, window in opened.items():
                        self._catch_up(window, number)
                    continue
                for number, window in opened.items():
                    window.state, window.events = drafts[number].state, drafts[number].events
                return done
        return [
            Conflict("others are changing this window: try again.", opened[c.window].state.version)
            for c in changes
        ]

    # ------------------------------------------------------------- classes

    def classes(self) -> Classes:
        """All classes. The object is kept until the log or the model has changed."""
        model, kept = self.model(), self._classes
        if kept is None or kept[0] != model or kept[1].version != self.store.last_seq(CLASSES):
            kept = self._classes = model, self._read_classes(model)
        return kept[1]

    def _read_classes(self, model: Mapping[str, Any]) -> Classes:
        renames = [event.get("renamed", {}) for event in model["events"]]
        merges = [event.get("merged", {}) for event in list_lineage(model)]
        return Classes(model["classes"], self.store.events(CLASSES), renames, merges)

    def _known_key(self, name: str, _: str, classes: Classes) -> str:
        key = classes.key(name)
        if key is None:
            raise BadInput(f"class {name!r} is not known: name the cluster to make a new class.")
        return key

    def make_class(self, typed: str, person: str = "", classes: Classes | None = None) -> str:
        """The key of the class of this name. The class is made if there is none.

        ``classes`` are those that were there a moment ago, if the caller has them.
        """
        for _ in range(MOST_ATTEMPTS):
            classes = classes or self.classes()
            try:
                name = classes.check_name(typed)
            except BadInput:  # a name that nothing uses any more may be in the way
                name = classes.drop_unused(self._used_keys()).check_name(typed)
            key = classes.key(name)
            if key is not None:
                return key
            patch = {"names": {name: [None, name]}}
            seq = classes.version + 1
            try:
                self.store.append(Event(CLASSES, seq, NEW, {"name": name}, patch, person, now()))
            except SeqTaken:
                classes = None
                continue
            return name
        raise Conflict("others are changing the classes: try again.")

    def _used_keys(self) -> set[str]:
        """The classes that any cluster is named by."""

        def compute(window: int) -> set[str]:
            opened = self.open(window)
            with opened.lock:
                return {cluster.name for cluster in opened.state.clusters.values() if cluster.name}

        ready = [row.id for row in self.store.windows() if row.status == DONE]
        return set[str]().union(
            *(self.compute_once("used", id, partial(compute, id)) for id in ready)
        )

    def rename(self, old: str, new: str, *, person: str = "", version: int | None = None) -> Event:
        """Rename a class. The model takes the name over in its next update."""
        classes = self.classes()
        patch = classes.make_rename(old, new)
        if version is not None:
            later = self.store.events(CLASSES, after=version)
            events = [e for e in later if patch["names"].keys() & e.patch.get("names", {}).keys()]
            if events:
                message = "somebody else has renamed the class: check its name."
                raise Conflict(message, classes.version, events)
        return self._append_rename(classes, {"old": old, "new": new}, patch, person)

    def undo_rename(self, person: str = "") -> Event:
        """Undo the last rename that stands."""
        events = self.store.events(CLASSES)
        undone = find_undone(events)
        renames = [e for e in events if e.verb == RENAME and e.seq not in undone]
        if not renames:
            raise BadInput("no class was renamed: there is nothing to undo.")
        last, classes = renames[-1], self.classes()
        ((key, (before, after)),) = last.patch["names"].items()
        if classes.names.get(key) != after or classes.key(before) not in (None, key):
            raise Conflict("it cannot be undone: names have changed.", classes.version, events)
        patch = {"names": {key: [after, before]}}
        return self._append_rename(
            classes, {"old": after, "new": before}, patch, person, undoes=last.seq
        )

    def _append_rename(
        self,
        classes: Classes,
        about: Mapping[str, Any],
        patch: Mapping[str, Any],
        person: str,
        undoes: int | None = None,
    ) -> Event:
        verb = RENAME if undoes is None else UNDO
        event = Event(CLASSES, classes.version + 1, verb, about, patch, person, now(), undoes)
        try:
            self.store.append(event)
        except SeqTaken as error:
            events = self.store.events(CLASSES, after=classes.version)
            raise Conflict("others are changing the classes.", classes.version, events) from error
        return event

    # ------------------------------------------------------------- the model

    def model(self) -> Mapping[str, Any]:
        """The description of the model that the worker has published.

        Its version, its classes under the model's own names, the number of labels of each, and its
        events.
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
            raise NotFound(f"job {number} does not exist.")
        return job


def _is_below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def list_lineage(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The events that led to the current version of a model, from its fit on."""
    made = {event["version"]: event for event in model["events"] if event["event"] != "rollback"}
    back, at = [], model["version"]
    while at is not None:
        back.append(made[at])
        at = None if made[at]["event"] == "fit" else made[at]["before"]
    return back[::-1]


def find_undone(events: Sequence[Event]) -> set[int]:
    """The seq of events that were undone, and of those that undid them."""
    pairs = [(event.undoes, event.seq) for event in events if event.undoes is not None]
    return {seq for pair in pairs for seq in pair}


def _try_change(draft: OpenWindow, change: Change) -> Event | Exception:
    """Make a change of a draft. Returns its event, or why it was refused."""
    try:
        _require_unchanged(draft, change.body)
        patch = change.make_patch(draft)
        _require_fit(draft, patch, change.undoes)
        seq = draft.state.version + 1
        event = Event(
            change.window, seq, change.verb, change.about, patch.to_json(), change.body.person,
            now(), change.undoes,
        )  # fmt: skip
        draft.state.apply(patch)
        draft.events.append(event)
        return event
    except Exception as error:  # noqa: BLE001 - the change fails, the others do not
        return error


def _patch_of(made: tuple[Mapping[str, Any], Patch] | None) -> Patch:
    return Patch() if made is None else made[1]


def _find_undoable(opened: OpenWindow, seq: int | None) -> Event:
    undone = opened.undone
    standing = [event for event in opened.events if event.seq not in undone]
    if seq is not None:
        standing = [event for event in standing if event.seq == seq]
    if not standing:
        raise BadInput("there is nothing to undo.")
    if standing[-1].seq < opened.start:
        raise Conflict(
            "it cannot be undone: the window was detected again since; undo that first.",
            opened.state.version,
            [event for event in opened.events if event.seq == opened.start],
        )
    return standing[-1]


def _require_fit(opened: OpenWindow, patch: Patch, undoes: int | None) -> None:
    try:
        opened.state.check(patch)
    except PatchConflict as error:
        later = [event for event in opened.events if event.seq > (undoes or 0)]
        message = f"it cannot be undone: {error}; undo what came later first."
        raise Conflict(message, opened.state.version, later) from error


def _require_unchanged(opened: OpenWindow, body: VerbBody) -> None:
    """Refuse a body whose clusters somebody else has changed since its version."""
    if body.version is None:
        return
    state, version = opened.state, body.version
    renewed = [e for e in opened.events if e.seq > version and changes_detection(e)]
    if renewed:
        raise Conflict("the window was detected again: check it first.", state.version, renewed)
    rows = [row for row in body.instances if 0 <= row < len(state.cluster_of)]
    concerned = set(body.numbers) | set(np.unique(state.cluster_of[rows]).tolist()) - {KNOWN}
    changed = {number for number in concerned if state.last_change.get(number, 0) > version}
    if changed:
        events = [
            event
            for event in opened.events
            if event.seq > version and Patch.from_json(event.patch).numbers & changed
        ]
        message = f"cluster {min(changed) + 1} was changed by somebody else: check it first."
        raise Conflict(message, state.version, events)
