"""What people have done with a window: groups of instances, changed by patches that can be undone.

A group starts as a kind that was found. Everything a person does is a :class:`Patch`, which says
what was before and what is after, so that undoing it is the same patch the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cilf.core.types import Ints

KNOWN = -1  # the group of instances that were taken for known ones
OPEN, REJECTED, SKIPPED = "open", "rejected", "skipped"


@dataclass(frozen=True)
class Group:
    """A kind of instances.

    Attributes:
        name: the class that its members are; None as long as nobody has said.
        status: "open", "rejected" (not new, not to be taught) or "skipped" (for later).
    """

    name: str | None = None
    status: str = OPEN

    def to_json(self) -> dict[str, str | None]:
        return {"name": self.name, "status": self.status}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any] | None) -> Group | None:
        return None if plain is None else cls(plain["name"], plain["status"])


@dataclass(frozen=True)
class Move:
    """Instances that go from one group to another."""

    rows: tuple[int, ...]
    source: int
    target: int

    def to_json(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "from": self.source, "to": self.target}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Move:
        return cls(tuple(plain["rows"]), plain["from"], plain["to"])


Change = tuple[Group | None, Group | None]  # before, after; None: there is no such group


@dataclass(frozen=True)
class Patch:
    """A change of a window's state, with what was there before."""

    groups: Mapping[int, Change] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()

    def reversed(self) -> Patch:
        """What takes it back."""
        groups = {number: (after, before) for number, (before, after) in self.groups.items()}
        moves = [Move(move.rows, move.target, move.source) for move in reversed(self.moves)]
        return Patch(groups, tuple(moves))

    @property
    def touched(self) -> set[int]:
        """The groups that it changes, or takes from, or gives to."""
        ends = {end for move in self.moves for end in (move.source, move.target)}
        return (set(self.groups) | ends) - {KNOWN}

    def to_json(self) -> dict[str, Any]:
        groups = {
            str(number): [None if group is None else group.to_json() for group in change]
            for number, change in self.groups.items()
        }
        return {"groups": groups, "moves": [move.to_json() for move in self.moves]}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Patch:
        groups = {
            int(number): (Group.from_json(before), Group.from_json(after))
            for number, (before, after) in plain["groups"].items()
        }
        return cls(groups, tuple(Move.from_json(move) for move in plain["moves"]))


class DoesNotApply(Exception):
    """What a patch says was there before is not what is there."""


class State:
    """The groups of a window, as far as a version: the number of changes so far.

    >>> state = State(np.array([-1, 0, 0]))
    >>> state.apply(Patch({0: (Group(), Group("cat"))}))
    >>> state.version, state.groups[0].name, state.members(0).tolist()
    (1, 'cat', [1, 2])
    """

    def __init__(self, cluster: Ints) -> None:
        self.group_of = cluster.astype(np.int64)
        self.groups = {number: Group() for number in range(int(cluster.max(initial=-1)) + 1)}
        self.changed: dict[int, int] = {}  # group -> the version that changed it last
        self.highest = len(self.groups) - 1  # number that any group ever had
        self.version = 0

    def members(self, group: int) -> Ints:
        return np.flatnonzero(self.group_of == group)

    def sizes(self) -> dict[int, int]:
        counts = np.bincount(self.group_of + 1, minlength=self.highest + 2)
        return {number: int(counts[number + 1]) for number in self.groups}

    def apply(self, patch: Patch) -> None:
        """Make a change; refused, and nothing changed, if it is not about what is there."""
        self.check(patch)
        self.version += 1
        for number, (_, after) in patch.groups.items():
            if after is None:
                self.groups.pop(number, None)
            else:
                self.groups[number] = after
        for move in patch.moves:
            self.group_of[list(move.rows)] = move.target
        self.highest = max([self.highest, *patch.groups])
        self.changed |= dict.fromkeys(patch.touched, self.version)

    def check(self, patch: Patch) -> None:
        """Refuse a change that is not about what is there."""
        for number, (before, _) in patch.groups.items():
            if self.groups.get(number) != before:
                raise DoesNotApply(f"group {number + 1} is not as it was")
        left = dict.fromkeys((n for n, (_, after) in patch.groups.items() if after is None), 0)
        for move in patch.moves:
            if (self.group_of[list(move.rows)] != move.source).any():
                raise DoesNotApply("instances are no longer where they were")
            for end, step in ((move.source, -1), (move.target, 1)):
                if end in left:
                    left[end] += step * len(move.rows)
        for number, change in left.items():
            if np.count_nonzero(self.group_of == number) + change:
                raise DoesNotApply(f"group {number + 1} has got other members since")


def replayed(cluster: Ints, patches: Iterable[Patch]) -> State:
    """The state after all these changes."""
    state = State(cluster)
    for patch in patches:
        state.apply(patch)
    return state
