"""The state of a window: clusters of instances, changed by patches that can be undone.

Detection finds the first clusters. Everything that a person does is a :class:`Patch`. A patch holds
what was before and what is after, so the reversed patch undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cilf.core.types import Ints

KNOWN = -1  # the number of the instances that were predicted as known classes
OPEN, REJECTED, SKIPPED = "open", "rejected", "skipped"


@dataclass(frozen=True)
class Cluster:
    """The name, the status and the assignee of a cluster.

    Attributes:
        name: the key of the class of its members; None if the cluster has no name.
        status: "open", "rejected" (not novel, left out of updates) or "skipped" (for later).
        assignee: the person who is asked to name it; "" is anybody.
    """

    name: str | None = None
    status: str = OPEN
    assignee: str = ""

    @property
    def is_unnamed(self) -> bool:
        return self.name is None and self.status == OPEN

    def to_json(self) -> dict[str, str | None]:
        assignee = {"assignee": self.assignee} if self.assignee else {}
        return {"name": self.name, "status": self.status, **assignee}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any] | None) -> Cluster | None:
        return (
            None
            if plain is None
            else cls(plain["name"], plain["status"], plain.get("assignee", ""))
        )


@dataclass(frozen=True)
class Move:
    """Instances that move from one cluster to another."""

    rows: tuple[int, ...]
    source: int
    target: int

    def to_json(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "from": self.source, "to": self.target}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Move:
        return cls(tuple(plain["rows"]), plain["from"], plain["to"])


Change = tuple[Cluster | None, Cluster | None]  # before, after; None: the cluster does not exist
Changes = dict[int, Change]  # by number
Opinion = str | None  # the key of a class; "" is asked for but not given, None is not asked for


@dataclass(frozen=True)
class Patch:
    """A change of a state, with what was there before."""

    clusters: Mapping[int, Change] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()
    opinions: Mapping[int, tuple[Opinion, Opinion]] = field(default_factory=dict)  # by row

    def reverse(self) -> Patch:
        """The patch that undoes this one."""
        clusters = {number: (after, before) for number, (before, after) in self.clusters.items()}
        moves = [Move(move.rows, move.target, move.source) for move in reversed(self.moves)]
        opinions = {row: (after, before) for row, (before, after) in self.opinions.items()}
        return Patch(clusters, tuple(moves), opinions)

    @property
    def numbers(self) -> set[int]:
        """The clusters that the patch changes, or moves instances from or to."""
        ends = {end for move in self.moves for end in (move.source, move.target)}
        return (set(self.clusters) | ends) - {KNOWN}

    def to_json(self) -> dict[str, Any]:
        clusters = {
            str(number): [None if cluster is None else cluster.to_json() for cluster in change]
            for number, change in self.clusters.items()
        }
        opinions = {str(row): list(change) for row, change in self.opinions.items()}
        plain = {"clusters": clusters, "moves": [move.to_json() for move in self.moves]}
        return plain | ({"opinions": opinions} if opinions else {})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Patch:
        clusters = {
            int(number): (Cluster.from_json(before), Cluster.from_json(after))
            for number, (before, after) in plain["clusters"].items()
        }
        opinions = {int(row): (old, new) for row, (old, new) in plain.get("opinions", {}).items()}
        return cls(clusters, tuple(Move.from_json(move) for move in plain["moves"]), opinions)


class PatchConflict(Exception):
    """A patch does not fit the state that it is applied to."""


class State:
    """The clusters of a window. The version is the number of changes so far.

    >>> state = State(np.array([-1, 0, 0]))
    >>> state.apply(Patch({0: (Cluster(), Cluster("cat"))}))
    >>> state.version, state.clusters[0].name, state.members(0).tolist()
    (1, 'cat', [1, 2])
    """

    def __init__(self, cluster: Ints) -> None:
        self.cluster_of = cluster.astype(np.int64)
        self.clusters = {number: Cluster() for number in range(int(cluster.max(initial=-1)) + 1)}
        self.opinions: dict[int, str] = {}  # row -> key of a class, or "" if it is not given yet
        self.last_change: dict[int, int] = {}  # cluster -> version of its last change
        self.highest = len(self.clusters) - 1  # number that any cluster has ever had
        self.version = 0

    def copy(self) -> State:
        """A state that changes on its own."""
        twin = copy(self)
        twin.cluster_of = self.cluster_of.copy()
        twin.clusters, twin.opinions = dict(self.clusters), dict(self.opinions)
        twin.last_change = dict(self.last_change)
        return twin

    def members(self, cluster: int) -> Ints:
        return np.flatnonzero(self.cluster_of == cluster)

    def sizes(self) -> dict[int, int]:
        counts = np.bincount(self.cluster_of + 1, minlength=self.highest + 2)
        return {number: int(counts[number + 1]) for number in self.clusters}

    def apply(self, patch: Patch) -> None:
        """Make a change. A patch that does not fit is refused, and nothing is changed."""
        self.check(patch)
        self.version += 1
        for number, (_, after) in patch.clusters.items():
            if after is None:
                self.clusters.pop(number, None)
            else:
                self.clusters[number] = after
        for move in patch.moves:
            self.cluster_of[list(move.rows)] = move.target
        for row, (_, opinion) in patch.opinions.items():
            if opinion is None:
                self.opinions.pop(row, None)
            else:
                self.opinions[row] = opinion
        self.highest = max([self.highest, *patch.clusters])
        self.last_change |= dict.fromkeys(patch.numbers, self.version)

    def check(self, patch: Patch) -> None:
        """Raise ``PatchConflict`` if a patch does not fit."""
        for number, (before, _) in patch.clusters.items():
            if self.clusters.get(number) != before:
                raise PatchConflict(f"cluster {number + 1} has changed since")
        for row, (opinion, _) in patch.opinions.items():
            if self.opinions.get(row) != opinion:
                raise PatchConflict("somebody else has given an opinion since")
        left = dict.fromkeys((n for n, (_, after) in patch.clusters.items() if after is None), 0)
        for move in patch.moves:
            if (self.cluster_of[list(move.rows)] != move.source).any():
                raise PatchConflict("instances have moved since")
            for end, step in ((move.source, -1), (move.target, 1)):
                if end in left:
                    left[end] += step * len(move.rows)
        for number, change in left.items():
            if np.count_nonzero(self.cluster_of == number) + change:
                raise PatchConflict(f"cluster {number + 1} has other members since")
