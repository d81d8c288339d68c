"""Verbs: changes of clusters and instances, as pure functions from a state to a patch.

``VERBS`` is the one table of them. The REST routes and their schema, the buttons and keys of the
page and the sentences of the history derive from it: a new verb is a function and a line.
Clusters and rows are counted from 0 here; people see clusters from 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cilf.clustering.cluster_split import split_members
from cilf.console.bodies import (
    AssignBody,
    ClustersBody,
    LabelBody,
    MoveBody,
    NameBody,
    RowsBody,
    SplitBody,
    VerbBody,
)  # fmt: skip
from cilf.console.state import KNOWN, OPEN, REJECTED, SKIPPED, Changes, Cluster, Move, Patch, State
from cilf.core.types import Floats
from cilf.errors import BadInput

CLUSTERS, CLUSTER, ROWS = "clusters", "cluster", "rows"  # what the page sends
NEW_CLASS, KNOWN_CLASS, TARGET = "name", "known", "target"  # inputs of the dialog
PERSON = "person"  # another one
UNDO = "undo"
AGAIN = "detect again"  # the event of a new detection


class Context(NamedTuple):
    """The values of a window that a verb uses."""

    state: State
    embedding: Floats  # (n, d)
    key: str = ""  # the key of the class that the request names


@dataclass(frozen=True)
class Verb:
    """A line of ``VERBS``.

    Attributes:
        function: computes the patch; its docstring describes the verb to people.
        body: the request body.
        title: the text of the button.
        key: the key on the page; the page has no button if it is empty.
        sentence: what the history says, with the fields of ``body.about``.
        takes: what the page sends, which is "clusters", "cluster" or "rows".
        dialog: the input of the page's dialog: "name", "known", "target", "person" or none.
        n_least: the fewest clusters that the verb takes.
        for_rows: the verb that does the same to single instances.
        is_answer: whether the verb spends the label budget.
        is_primary: whether the button is always in sight; the others are in the menu.
    """

    function: Callable[[Context, Any], Patch]
    body: type[VerbBody]
    title: str
    key: str
    sentence: str
    takes: str = CLUSTERS
    dialog: str = ""
    n_least: int = 1
    for_rows: str = ""
    is_answer: bool = False
    is_primary: bool = False

    @property
    def description(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


# ----------------------------------------------------------------- the verbs


def name(context: Context, body: NameBody) -> Patch:
    """Name clusters. A new name makes a new class."""
    return _set_clusters(
        context.state, body.numbers, lambda old: replace(old, name=context.key, status=OPEN)
    )


def into(context: Context, body: NameBody) -> Patch:
    """Assign clusters to a class that exists already."""
    return name(context, body)


def merge(context: Context, body: ClustersBody) -> Patch:
    """Merge clusters into the first of them. It takes the first name that any of them has."""
    state, numbers = context.state, _require_clusters(context.state, body.numbers)
    if len(numbers) < 2:
        raise BadInput("clusters: give two or more to merge.")
    target, others = numbers[0], numbers[1:]
    names = [state.clusters[number].name for number in numbers]
    label = next((name for name in names if name is not None), None)
    old = state.clusters[target]
    new = replace(old, name=label, status=OPEN if label is not None else old.status)
    changes: Changes = {} if new == old else {target: (old, new)}
    changes |= {number: (state.clusters[number], None) for number in others}
    moves = [_make_move(state.members(number), number, target) for number in others]
    return Patch(changes, tuple(move for move in moves if move.rows))


def split(context: Context, body: SplitBody) -> Patch:
    """Split the chosen instances off a cluster, or split the cluster in two."""
    (number,) = _require_clusters(context.state, body.numbers)
    if body.rows:
        return split_off(context.state, number, [body.rows])
    members = context.state.members(number)
    lists = split_members(context.embedding, members, body.n_clusters)
    return split_off(context.state, number, lists[1:])


def reject(context: Context, body: ClustersBody) -> Patch:
    """Mark clusters as not novel. Updates leave them out."""
    return _set_clusters(
        context.state, body.numbers, lambda old: replace(old, name=None, status=REJECTED)
    )


def skip(context: Context, body: ClustersBody) -> Patch:
    """Leave clusters for later. They keep their names."""
    return _set_clusters(context.state, body.numbers, lambda old: replace(old, status=SKIPPED))


def reopen(context: Context, body: ClustersBody) -> Patch:
    """Reopen clusters that were named, rejected or skipped."""
    return _set_clusters(context.state, body.numbers, lambda old: Cluster(assignee=old.assignee))


def assign(context: Context, body: AssignBody) -> Patch:
    """Assign clusters to a person who is asked to name them. Without a name, to nobody."""
    person = body.assignee.strip()
    return _set_clusters(context.state, body.numbers, lambda old: replace(old, assignee=person))


def review(context: Context, body: RowsBody) -> Patch:
    """Ask for a second opinion on instances."""
    _require_rows(context.state, body.rows)
    rows = [row for row in dict.fromkeys(body.rows) if row not in context.state.opinions]
    if not rows:
        raise BadInput("rows: a second opinion on all of them is asked for already.")
    return Patch(opinions=dict.fromkeys(rows, (None, "")))


def opinion(context: Context, body: LabelBody) -> Patch:
    """Give a second opinion on instances. Their labels stay."""
    state = context.state
    _require_rows(state, body.rows)
    given = {row: state.opinions.get(row) for row in body.rows}
    changes = {row: (old, context.key) for row, old in given.items() if old != context.key}
    if not changes:
        raise BadInput("rows: all of them have this second opinion already.")
    return Patch(opinions=changes)


def move(context: Context, body: MoveBody) -> Patch:
    """Move instances to another cluster, to a new one, or to the known instances."""
    state, target = context.state, body.target
    _require_rows(state, body.rows)
    changes: Changes = {}
    if target is None:
        target = state.highest + 1
        changes[target] = (None, Cluster())
    elif target != KNOWN:
        _require_clusters(state, [target])
    return end_empty_clusters(state, changes, make_moves(state, body.rows, target))


def label(context: Context, body: LabelBody) -> Patch:
    """Assign instances to a class. A new name makes a new class."""
    return label_rows(context.state, dict.fromkeys(body.rows, context.key))


VERBS: dict[str, Verb] = {
    "name": Verb(
        name, NameBody, "Name", "n", "named {clusters} “{name}”",
        dialog=NEW_CLASS, for_rows="label", is_answer=True, is_primary=True,
    ),
    "into": Verb(
        into, NameBody, "Into known", "i", "assigned {clusters} to “{name}”",
        dialog=KNOWN_CLASS, for_rows="label", is_answer=True,
    ),
    "merge": Verb(
        merge, ClustersBody, "Merge", "m", "merged {clusters}",
        n_least=2, is_answer=True, is_primary=True,
    ),
    "split": Verb(
        split, SplitBody, "Split", "s", "split cluster {cluster}", takes=CLUSTER, is_primary=True
    ),
    "reject": Verb(
        reject, ClustersBody, "Reject", "r", "rejected {clusters}", is_answer=True, is_primary=True
    ),
    "skip": Verb(skip, ClustersBody, "Skip", "k", "skipped {clusters}"),
    "reopen": Verb(reopen, ClustersBody, "Reopen", "o", "reopened {clusters}"),
    "assign": Verb(
        assign, AssignBody, "Assign to", "p", "assigned {clusters} to {assignee}", dialog=PERSON
    ),
    "review": Verb(
        review, RowsBody, "Second opinion", "e", "asked for a second opinion on {n}", takes=ROWS
    ),
    "move": Verb(
        move, MoveBody, "Move", "v", "moved {n} to {to}", takes=ROWS, dialog=TARGET, is_answer=True
    ),
    "label": Verb(
        label, LabelBody, "Label", "", "labelled {n} as “{name}”",
        takes=ROWS, dialog=NEW_CLASS, is_answer=True,
    ),
    "opinion": Verb(
        opinion, LabelBody, "Give an opinion", "", "gave a second opinion on {n}: “{name}”",
        takes=ROWS, dialog=NEW_CLASS,
    ),
}  # fmt: skip


def describe_event(verb: str, about: Mapping[str, Any]) -> str:
    """The sentence of the history about an event.

    >>> describe_event("move", {"n": 3, "to": "new"})
    'moved 3 to a new cluster'
    """
    if verb == UNDO:
        return f"undid {about['what']}"
    if verb == AGAIN:
        lost = f", {about['n_lost']} lost" if about["n_lost"] else ""
        return (
            f"detected again with model version {about['version']}, "
            f"{about['n_labels']} labels carried over{lost}"
        )
    if verb not in VERBS:  # the log outlives the table
        return verb
    targets = {"new": "a new cluster", "known": "the known instances"}
    words = {
        "clusters": "cluster " + ", ".join(map(str, about.get("clusters", ()))),
        "to": targets.get(about.get("to", ""), f"cluster {about.get('to')}"),
        "assignee": about.get("assignee") or "nobody",
    }
    return VERBS[verb].sentence.format(**{**about, **words})


# ----------------------------------------------------------------- patches


def split_off(state: State, number: int, lists: Sequence[Iterable[int]]) -> Patch:
    """Make a new cluster of each list of members. At least one member stays."""
    members = set(state.members(number).tolist())
    taken: set[int] = set()
    changes: Changes = {}
    moves = []
    for new, list_of_rows in enumerate(lists, start=state.highest + 1):
        rows = set(list_of_rows)
        if not rows or not rows <= members - taken:
            raise BadInput(f"rows: give some members of cluster {number + 1}, each once.")
        taken |= rows
        changes[new] = (None, Cluster())
        moves.append(_make_move(sorted(rows), number, new))
    if not moves or taken == members:
        raise BadInput(f"rows: leave some of the {len(members)} members in cluster {number + 1}.")
    return Patch(changes, tuple(moves))


def label_rows(state: State, labels: Mapping[int, str]) -> Patch:
    """Move each row to the first open cluster of its class, or to a new one of that class."""
    _require_rows(state, list(labels))
    changes: Changes = {}
    moves: list[Move] = []
    number = state.highest
    rows_of: dict[str, list[int]] = {}
    for row, key in labels.items():
        rows_of.setdefault(key, []).append(row)
    named: dict[str, int] = {}  # the first open cluster of each class
    for n, cluster in sorted(state.clusters.items()):
        if cluster.name is not None and cluster.status == OPEN:
            named.setdefault(cluster.name, n)
    for key, rows in rows_of.items():
        target = named.get(key)
        if target is None:
            target = number = number + 1
            changes[target] = (None, Cluster(key))
        moves += make_moves(state, rows, target)
    return end_empty_clusters(state, changes, moves)


def end_empty_clusters(state: State, changes: Changes, moves: Sequence[Move]) -> Patch:
    """The moves, and the end of the clusters that they leave empty."""
    if not moves:
        raise BadInput("rows: all of them are there already.")
    sizes = state.sizes()
    for source in {move.source for move in moves} - {KNOWN}:
        n_leaving = sum(len(move.rows) for move in moves if move.source == source)
        n_arriving = sum(len(move.rows) for move in moves if move.target == source)
        if n_leaving - n_arriving == sizes[source]:
            changes[source] = (state.clusters[source], None)
    return Patch(changes, tuple(moves))


def make_moves(state: State, rows: Sequence[int], target: int) -> list[Move]:
    wanted = np.array(sorted(set(rows)), dtype=np.int64)
    sources = state.cluster_of[wanted]
    return [
        _make_move(wanted[sources == source], source, target)
        for source in np.unique(sources).tolist()
        if source != target
    ]


def _make_move(rows: Iterable[int], source: int, target: int) -> Move:
    return Move(tuple(int(row) for row in rows), source, target)


def _set_clusters(
    state: State, numbers: Sequence[int], after: Callable[[Cluster], Cluster]
) -> Patch:
    changes = {
        number: (state.clusters[number], after(state.clusters[number]))
        for number in _require_clusters(state, numbers)
    }
    changes = {number: (old, new) for number, (old, new) in changes.items() if old != new}
    if not changes:
        raise BadInput("clusters: all of them are like that already.")
    return Patch(changes)


def _require_clusters(state: State, numbers: Sequence[int]) -> list[int]:
    for number in numbers:
        if number not in state.clusters:
            raise BadInput(
                f"cluster {number + 1} does not exist: it may have been merged or emptied."
            )
    return list(dict.fromkeys(numbers))


def _require_rows(state: State, rows: Sequence[int]) -> None:
    n = len(state.cluster_of)
    for row in rows:
        if not 0 <= row < n:
            raise BadInput(f"row {row} does not exist: the window has {n}, counted from 0.")
