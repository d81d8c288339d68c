"""What happened to classes over all windows: counts, what came, vanished and drifted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cilf.console.classes import Classes
from cilf.console.service import Console
from cilf.console.state import KNOWN, OPEN
from cilf.console.store import CLASSES, DONE, WindowRow

DRIFTED = 1.0  # times the spread of a class: from here on it is told
N_EXAMPLES = 8


@dataclass(frozen=True)
class WindowCounts:
    """How many instances of each class a window has; what has no name is left out."""

    window: WindowRow
    known: Counter[str]  # key of a class -> those that the model took for it
    named: Counter[str]  # and those that people said are of it
    unnamed: int

    @property
    def all(self) -> Counter[str]:
        return self.known + self.named


def counts(console: Console) -> list[WindowCounts]:
    """The counts of every window that was looked at, in the order they came."""
    classes = console.classes()
    ready = [row for row in console.store.windows() if row.status == DONE]
    return [
        console.figured("counts", row.id, partial(_counts, console, row, classes)) for row in ready
    ]


def _counts(console: Console, row: WindowRow, classes: Classes) -> WindowCounts:
    opened = console.opened(row.id)
    with opened.lock:
        state = opened.state
        labels = opened.gallery.label[state.group_of == KNOWN].tolist()
        known = Counter(classes.key_of_label(str(label)) for label in labels)
        named: Counter[str] = Counter()
        unnamed = 0
        sizes = state.sizes()
        for number, group in state.groups.items():
            if group.name is not None and group.status == OPEN:
                named[group.name] += sizes[number]
            else:
                unnamed += sizes[number]
    return WindowCounts(row, known, named, unnamed)


def stream(console: Console) -> list[dict[str, Any]]:
    """For each window: classes that came, that vanished, and that drifted."""
    classes = console.classes()
    first = {classes.key_of_label(label) for label in _first_classes(console)}
    seen: set[str] = set()  # in an earlier window
    before: set[str] = set()  # in the last one
    story = []
    for found in counts(console):
        here = {key for key, n in found.all.items() if n}
        drift = {
            classes.shown(label): value
            for label, value in found.window.facts.get("drift", {}).items()
            if value >= DRIFTED
        }
        story.append(
            {
                "window": found.window.id,
                "name": found.window.name,
                "n": found.window.facts["n"],
                "unnamed": found.unnamed,
                "counts": {classes.display(key): n for key, n in found.all.items()},
                "named": {classes.display(key): n for key, n in found.named.items()},
                "came": sorted(classes.display(key) for key in here - seen - first),
                "vanished": sorted(classes.display(key) for key in before - here),
                "returned": sorted(classes.display(key) for key in (here & seen) - before),
                "drifted": drift,
            }
        )
        seen |= here
        before = here
    return story


def _first_classes(console: Console) -> list[str]:
    events = console.model()["events"]
    return list(events[0].get("new_classes", ())) if events else []


def class_list(console: Console) -> list[dict[str, Any]]:
    """Every class: since when, from how many labels, how many in each window, some examples."""
    classes, model, windows = console.classes(), console.model(), counts(console)
    changes = console.store.events(CLASSES)
    return [
        {
            "name": classes.display(key),
            "learned": classes.is_learned(key),
            "label": classes.label(key),
            "since": model["sizes"].get(classes.label(key), {}).get("since"),
            "n_labels": model["sizes"].get(classes.label(key), {}).get("n_labels", 0),
            "counts": [{"window": w.window.id, "n": w.all[key]} for w in windows if w.all[key]],
            "earlier": _earlier_names(changes, key, classes.display(key)),
            "examples": _examples(console, windows, classes, key),
        }
        for key in classes.names
        if classes.is_learned(key) or any(w.all[key] for w in windows)
    ]


def _earlier_names(changes: list[Any], key: str, now: str) -> list[str]:
    names = [
        name for event in changes for name in event.patch.get("names", {}).get(key, ()) if name
    ]
    return [name for name in dict.fromkeys(names) if name != now]


def _examples(
    console: Console, windows: list[WindowCounts], classes: Classes, key: str
) -> list[dict[str, Any]]:
    """Instances of the last window that has some, those that people named first."""
    found = next((found for found in reversed(windows) if found.all[key]), None)
    if found is None:
        return []
    opened = console.opened(found.window.id)
    with opened.lock:
        state = opened.state
        if found.named[key]:
            groups = [n for n, g in state.groups.items() if g.name == key and g.status == OPEN]
            rows = np.flatnonzero(np.isin(state.group_of, groups))
        else:
            labels = np.unique(opened.gallery.label)
            own = [label for label in labels if classes.key_of_label(str(label)) == key]
            rows = np.flatnonzero((state.group_of == KNOWN) & np.isin(opened.gallery.label, own))
    form = opened.gallery.form
    return [
        {"window": found.window.id, "row": row, "form": form, "text": opened.gallery.excerpt(row)}
        for row in rows[:N_EXAMPLES].tolist()
    ]
