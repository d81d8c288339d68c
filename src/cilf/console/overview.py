"""Classes over all windows: their counts, and which came, vanished, returned or drifted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cilf.console.classes import Classes
from cilf.console.service import Console
from cilf.console.state import KNOWN
from cilf.console.store import CLASSES, DONE, WindowRow

MIN_DRIFT = 1.0  # in units of the spread of a class
N_EXAMPLES = 8


@dataclass(frozen=True)
class WindowCounts:
    """The number of instances of each class in a window."""

    window: WindowRow
    known: Counter[str]  # key of a class -> instances that the model predicts as it
    named: Counter[str]  # key of a class -> instances that people assigned to it
    unnamed: int  # instances of clusters without a name

    @property
    def all(self) -> Counter[str]:
        return self.known + self.named


def count_classes(console: Console) -> list[WindowCounts]:
    """The counts of every window in which detection is done, in order."""
    classes, model = console.classes(), console.model()["version"]
    ready = [row for row in console.store.windows() if row.status == DONE]
    return [
        console.compute_once("counts", row.id, partial(_count_window, console, row, classes), model)
        for row in ready
    ]


def _count_window(console: Console, row: WindowRow, classes: Classes) -> WindowCounts:
    opened = console.open(row.id)
    with opened.lock:
        is_known = opened.state.cluster_of == KNOWN
        named = Counter(classes.present_key(key) for key in opened.labels.values())
    labels = opened.gallery.label[is_known].tolist()
    known = Counter(classes.key_of_label(str(label)) for label in labels)
    return WindowCounts(row, known, named, int((~is_known).sum()) - named.total())


def summarize_stream(console: Console) -> list[dict[str, Any]]:
    """For each window, the classes that came, vanished, returned and drifted."""
    classes = console.classes()
    first = {classes.key_of_label(label) for label in _first_classes(console)}
    earlier: set[str] = set()  # classes of all windows before
    before: set[str] = set()  # classes of the window before
    summary = []
    for found in count_classes(console):
        here = {key for key, n in found.all.items() if n}
        drift = {
            classes.display_label(label): value
            for label, value in found.window.facts.get("drift", {}).items()
            if value >= MIN_DRIFT
        }
        summary.append(
            {
                "window": found.window.id,
                "name": found.window.name,
                "n": found.window.facts["n"],
                "unnamed": found.unnamed,
                "counts": {classes.display(key): n for key, n in found.all.items()},
                "named": {classes.display(key): n for key, n in found.named.items()},
                "came": sorted(classes.display(key) for key in here - earlier - first),
                "vanished": sorted(classes.display(key) for key in before - here),
                "returned": sorted(classes.display(key) for key in (here & earlier) - before),
                "drifted": drift,
            }
        )
        earlier |= here
        before = here
    return summary


def _first_classes(console: Console) -> list[str]:
    events = console.model()["events"]
    return list(events[0].get("new_classes", ())) if events else []


def list_classes(console: Console) -> list[dict[str, Any]]:
    """Every class with its version, number of labels, counts in windows, and examples."""
    classes, model, windows = console.classes(), console.model(), count_classes(console)
    changes = console.store.events(CLASSES)
    return [
        {
            "name": classes.display(key),
            "in_model": classes.is_in_model(key),
            "label": classes.label(key),
            "since": model["sizes"].get(classes.label(key), {}).get("since"),
            "n_labels": model["sizes"].get(classes.label(key), {}).get("n_labels", 0),
            "counts": [{"window": w.window.id, "n": w.all[key]} for w in windows if w.all[key]],
            "earlier": _earlier_names(changes, key, classes.display(key)),
            "examples": _examples(console, windows, classes, key),
        }
        for key in classes.names
        if classes.is_in_model(key) or any(w.all[key] for w in windows)
    ]


def _earlier_names(changes: list[Any], key: str, now: str) -> list[str]:
    names = [
        name for event in changes for name in event.patch.get("names", {}).get(key, ()) if name
    ]
    return [name for name in dict.fromkeys(names) if name != now]


def _examples(
    console: Console, windows: list[WindowCounts], classes: Classes, key: str
) -> list[dict[str, Any]]:
    """Instances of the last window that has some. Those that people named are preferred."""
    found = next((found for found in reversed(windows) if found.all[key]), None)
    if found is None:
        return []
    opened = console.open(found.window.id)
    with opened.lock:
        rows = [row for row, named in opened.labels.items() if classes.present_key(named) == key]
        if not rows:
            own = [
                v for v in np.unique(opened.gallery.label) if classes.key_of_label(str(v)) == key
            ]
            is_own = np.isin(opened.gallery.label, own)
            rows = np.flatnonzero((opened.state.cluster_of == KNOWN) & is_own).tolist()
    form = opened.gallery.form
    return [
        {"window": found.window.id, "row": row, "form": form, "text": opened.gallery.excerpt(row)}
        for row in rows[:N_EXAMPLES]
    ]
