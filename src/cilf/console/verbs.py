"""What people do with groups, each a pure function: a state in, a patch out.

Groups and rows are counted from 0 here; people see groups from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from cilf.console.state import KNOWN, OPEN, REJECTED, SKIPPED, Change, Group, Move, Patch, State
from cilf.errors import BadInput


def name(state: State, groups: Sequence[int], label: str) -> Patch:
    """Say which class groups are, a known one or one that is new on the fly."""
    return _changed(state, groups, lambda _: Group(label))


def reject(state: State, groups: Sequence[int]) -> Patch:
    """Say that groups are not new: they are not taught."""
    return _changed(state, groups, lambda _: Group(None, REJECTED))


def skip(state: State, groups: Sequence[int]) -> Patch:
    """Leave groups for later; what they are called is kept."""
    return _changed(state, groups, lambda old: Group(old.name, SKIPPED))


def reopen(state: State, groups: Sequence[int]) -> Patch:
    """Look at groups again that were named, rejected or skipped."""
    return _changed(state, groups, lambda _: Group())


def merge(state: State, groups: Sequence[int]) -> Patch:
    """Put groups into the first of them; it takes the first name that any of them has."""
    chosen = _existing(state, groups)
    if len(chosen) < 2:
        raise BadInput("groups: give two or more to merge.")
    target, others = chosen[0], chosen[1:]
    names = [state.groups[number].name for number in chosen]
    label = next((name for name in names if name is not None), None)
    old = state.groups[target]
    kept = Group(label, OPEN if label is not None else old.status)
    changes: dict[int, Change] = {} if kept == old else {target: (old, kept)}
    changes |= {number: (state.groups[number], None) for number in others}
    moves = [_move(state.members(number), number, target) for number in others]
    return Patch(changes, tuple(move for move in moves if move.rows))


def split(state: State, group: int, parts: Sequence[Iterable[int]]) -> Patch:
    """Make a new group of each part of a group's members; at least one member stays."""
    (group,) = _existing(state, [group])
    members = set(state.members(group).tolist())
    taken: set[int] = set()
    changes: dict[int, Change] = {}
    moves = []
    for number, part in enumerate(parts, start=state.highest + 1):
        rows = set(part)
        if not rows or not rows <= members - taken:
            raise BadInput(f"rows: give some members of group {group + 1}, each once.")
        taken |= rows
        changes[number] = (None, Group())
        moves.append(_move(sorted(rows), group, number))
    if not moves or taken == members:
        raise BadInput(f"rows: leave some of the {len(members)} members in group {group + 1}.")
    return Patch(changes, tuple(moves))


def move(state: State, rows: Sequence[int], target: int | None) -> Patch:
    """Put single instances into another group, a new one if None, or among the known (-1)."""
    wanted = _rows(state, rows)
    changes: dict[int, Change] = {}
    if target is None:
        target = state.highest + 1
        changes[target] = (None, Group())
    elif target != KNOWN:
        _existing(state, [target])
    return _moved(state, wanted, target, changes)


def label(state: State, labels: Mapping[int, str]) -> Patch:
    """Say which class single instances are: each goes into a group of that name.

    That is the first open group of the name, or a new one.
    """
    _rows(state, list(labels))
    changes: dict[int, Change] = {}
    moves: list[Move] = []
    number = state.highest
    for name in dict.fromkeys(labels.values()):
        target = next((n for n, g in sorted(state.groups.items()) if g == Group(name)), None)
        if target is None:
            target = number = number + 1
            changes[target] = (None, Group(name))
        rows = [row for row, wanted in labels.items() if wanted == name]
        moves += _moves(state, rows, target)
    return _without_empty(state, changes, moves)


def _moved(state: State, rows: Sequence[int], target: int, changes: dict[int, Change]) -> Patch:
    return _without_empty(state, changes, _moves(state, rows, target))


def _without_empty(state: State, changes: dict[int, Change], moves: Sequence[Move]) -> Patch:
    """The moves, and the end of groups that they leave empty."""
    if not moves:
        raise BadInput("rows: all of them are there already.")
    sizes = state.sizes()
    for source in {move.source for move in moves} - {KNOWN}:
        leaving = sum(len(move.rows) for move in moves if move.source == source)
        arriving = sum(len(move.rows) for move in moves if move.target == source)
        if leaving - arriving == sizes[source]:
            changes[source] = (state.groups[source], None)
    return Patch(changes, tuple(moves))


def _moves(state: State, rows: Sequence[int], target: int) -> list[Move]:
    wanted = np.array(sorted(set(rows)), dtype=np.int64)
    sources = state.group_of[wanted]
    return [
        _move(wanted[sources == source], source, target)
        for source in np.unique(sources).tolist()
        if source != target
    ]


def _move(rows: Iterable[int], source: int, target: int) -> Move:
    return Move(tuple(int(row) for row in rows), source, target)


def _changed(state: State, groups: Sequence[int], after: Callable[[Group], Group]) -> Patch:
    changes = {
        number: (state.groups[number], after(state.groups[number]))
        for number in _existing(state, groups)
    }
    changes = {number: (old, new) for number, (old, new) in changes.items() if old != new}
    if not changes:
        raise BadInput("groups: all of them are like that already.")
    return Patch(changes)


def _existing(state: State, groups: Sequence[int]) -> list[int]:
    if not groups:
        raise BadInput("groups: give at least one.")
    for number in groups:
        if number not in state.groups:
            raise BadInput(f"group {number + 1} is not there: it may have been merged or emptied.")
    return list(dict.fromkeys(groups))


def _rows(state: State, rows: Sequence[int]) -> list[int]:
    n = len(state.group_of)
    if not rows:
        raise BadInput("rows: give at least one.")
    for row in rows:
        if not 0 <= row < n:
            raise BadInput(f"row {row} is not there: the window has {n}, counted from 0.")
    return list(rows)
