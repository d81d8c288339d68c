"""The detections of a window: the first one, and those that took its place.

A window that is detected again keeps its number, its log and the former detection. The event
``AGAIN`` of the log says which detection is shown from then on, and moves the answers of people
over to it. Undoing the event brings the former detection back, as it was then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cilf.console.gallery import Gallery
from cilf.console.state import KNOWN, OPEN, Changes, Cluster, Move, Patch, State
from cilf.console.store import Event
from cilf.console.verbs import AGAIN, end_empty_clusters, make_moves
from cilf.core.types import Ints

DETECTION = "detection"  # key of its number, in patches and in the facts of a window
GONE = -1  # the new row of an instance that is not there any more


def detection_folder(folder: Path, number: int | None) -> Path:
    """The folder of a detection of a window; the first detection has no number."""
    return folder if number is None else folder / f"again-{number}"


def changes_detection(event: Event) -> bool:
    """Whether another detection is shown from this event on."""
    return DETECTION in event.patch


def replay_window(folder: Path, events: Sequence[Event]) -> tuple[Gallery, State]:
    """The shown detection of a window after all events, and its state."""
    gallery = Gallery(folder)
    state = State(gallery.cluster)
    for place, event in enumerate(events):
        if not changes_detection(event):
            state.apply(Patch.from_json(event.patch))
        elif event.undoes is None:
            gallery = Gallery(detection_folder(folder, event.patch[DETECTION]))
            state = State(gallery.cluster)
            state.version = event.seq - 1
            state.apply(Patch.from_json(event.patch))
            _mark_changed(state, event.seq)
        else:
            before = [one for one in events[:place] if one.seq < event.undoes]
            gallery, state = replay_window(folder, before)
            _mark_changed(state, event.seq)
    return gallery, state


def _mark_changed(state: State, version: int) -> None:
    """Let all clusters count as changed in a version, so that nobody builds on earlier ones."""
    state.version = version
    state.last_change = dict.fromkeys(state.clusters, version)


def find_start(events: Sequence[Event], undone: set[int]) -> int:
    """The seq of the event since which the present detection is shown; 0 for the first one."""
    standing = [e.seq for e in events if changes_detection(e) and e.seq not in undone]
    return max(standing, default=0)


@dataclass(frozen=True)
class CarriedOver:
    """The answers of people in another detection.

    Attributes:
        patch: the change of the new detection that has the answers in it.
        n_labels: the number of labels that are there.
        n_lost: the number of labels whose instances are not there any more.
    """

    patch: Patch
    n_labels: int
    n_lost: int


def carry_over(
    old: State, found: Ints, cluster: Ints, row_of: Ints, settled: Mapping[int, str]
) -> CarriedOver:
    """Move the answers of people over to a new detection.

    A cluster with a name, or one that was rejected or skipped, is there again with the members that
    are still there. Instances that were moved to the known ones are known.

    Args:
        old: the state of the former detection.
        found: the cluster of each instance that the former detection found.
        cluster: the cluster of each instance in the new detection.
        row_of: the new row of each former row; -1 if the instance is gone.
        settled: the class of each new row that the model knows from a person.
    """
    state = State(cluster)
    changes: Changes = {}
    moves: list[Move] = []
    n_labels, n_lost = 0, 0
    number = state.highest
    for former, about in sorted(old.clusters.items()):
        if about == Cluster():
            continue
        rows = row_of[old.members(former)]
        there = rows[rows != GONE].tolist()
        if about.name is not None and about.status == OPEN:
            n_labels, n_lost = n_labels + len(there), n_lost + len(rows) - len(there)
            there = [row for row in there if settled.get(row) != about.name]
        if there:
            number += 1
            changes[number] = (None, about)
            moves += make_moves(state, there, number)
    called_known = row_of[(found != KNOWN) & (old.cluster_of == KNOWN)]
    novel = [row for row in called_known.tolist() if row != GONE and cluster[row] != KNOWN]
    moves += make_moves(state, novel, KNOWN) if novel else []
    patch = end_empty_clusters(state, changes, moves) if moves else Patch()
    return CarriedOver(patch, n_labels, n_lost)


def match_rows(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> Ints:
    """The new row of each former instance, by identity and content or else by content.

    >>> match_rows([("a", "x"), ("b", "y"), ("c", "z")], [("c2", "z"), ("a", "x")]).tolist()
    [1, -1, 0]
    """
    by_pair = {pair: row for row, pair in enumerate(new)}
    rows = np.array([by_pair.get(pair, GONE) for pair in old], dtype=np.int64)
    taken = set(rows.tolist())
    left: dict[str, list[int]] = {}
    for row, (_, content) in enumerate(new):
        if row not in taken:
            left.setdefault(content, []).append(row)
    for place in np.flatnonzero(rows == GONE).tolist():
        free = left.get(old[place][1])
        if free:
            rows[place] = free.pop(0)
    return rows


def make_again_patch(
    carried: CarriedOver, number: int, before: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The patch of ``AGAIN``: the detection, the facts before and after, and the answers."""
    own = {DETECTION: number, "facts": [dict(before), dict(facts)]}
    return own | carried.patch.to_json()


def make_undo_patch(event: Event) -> dict[str, Any]:
    """The patch that brings the former detection back."""
    assert event.verb == AGAIN
    before, after = event.patch["facts"]
    own = {DETECTION: before.get(DETECTION), "facts": [after, before]}
    return own | Patch().to_json()
