"""Views of a window: clusters, members, queries and labels. Clusters are counted from 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cilf.console.classes import Classes
from cilf.console.detections import find_start
from cilf.console.gallery import TEXTS, Exemplars, Gallery, choose_exemplars
from cilf.console.member_order import EVERYTHING, FILTERS, SORTS, TYPICAL, MemberView
from cilf.console.service import Console, NotFound, OpenWindow
from cilf.console.similarity import find_similar
from cilf.console.state import KNOWN, OPEN, REJECTED, SKIPPED, Patch
from cilf.console.verbs import describe_event
from cilf.core import Detection
from cilf.core.types import Ints
from cilf.query.strategies import choose_queries
from cilf.workflow.formats import LabelRow

SEED = 0


def list_clusters(console: Console, window: int) -> list[dict[str, Any]]:
    """The clusters of a window, open ones first, large ones first."""
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        numbers = list(opened.state.clusters)
        found = [_describe_cluster(opened, classes, number) for number in numbers]
    return sorted(found, key=_order)


def _describe_cluster(opened: OpenWindow, classes: Classes, number: int) -> dict[str, Any]:
    cluster, members = opened.state.clusters[number], opened.state.members(number)
    labels = Counter(opened.gallery.label[members].tolist()).most_common(1)
    return {
        "cluster": number + 1,
        "name": None if cluster.name is None else classes.display(cluster.name),
        "status": cluster.status,
        "assignee": cluster.assignee,
        "size": len(members),
        "nearest": classes.display_label(str(labels[0][0])) if labels else None,
        "last_change": opened.state.last_change.get(number, 0),
    }


def find_exemplars(console: Console, window: int, cluster: int) -> Exemplars:
    """The members of a cluster that its contact sheet shows."""
    opened = console.open(window)
    with opened.lock:
        members = opened.state.members(cluster - 1)
    if not len(members):
        raise NotFound(f"cluster {cluster} does not exist.")
    return choose_exemplars(opened.gallery.embedding, members, seed=SEED)


def count_known(console: Console, window: int) -> dict[str, int]:
    """Known class -> number of instances that were predicted as it."""
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        labels = opened.gallery.label[opened.state.cluster_of == KNOWN].tolist()
    return {classes.display_label(str(label)): n for label, n in Counter(labels).most_common()}


@dataclass(frozen=True, kw_only=True)
class Members:
    """Which instances of a window to list, and in which order.

    Attributes:
        cluster: only members of this cluster; 0 is the known instances, None is everything.
        label: only instances that are predicted as this class.
        sort: a key of ``SORTS``.
        only: a key of ``FILTERS``.
    """

    cluster: int | None = None
    label: str | None = None
    sort: str = TYPICAL
    only: str = EVERYTHING


def list_members(console: Console, window: int, wanted: Members) -> list[int]:
    """The rows of the members, in order.

    Near-duplicates follow each other where the first of them has its place.
    """
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        cluster_of, labels = opened.state.cluster_of.copy(), opened.labels
    names = {row: classes.display(key) for row, key in labels.items()}
    view = MemberView(opened.gallery, cluster_of, names, wanted.cluster)
    rows = np.arange(len(cluster_of))
    if wanted.cluster is not None:
        rows = np.flatnonzero(cluster_of == wanted.cluster - 1)
    if wanted.label is not None:
        shown = [classes.display_label(str(name)) for name in opened.gallery.label[rows]]
        rows = rows[np.array(shown, dtype=object) == wanted.label]
    if len(rows):
        rows = rows[FILTERS[wanted.only].choose(view, rows)]
    ordered: list[int] = rows[SORTS[wanted.sort].order(view, rows)].tolist() if len(rows) else []
    return [row for stack in group_stacks(opened.gallery, cluster_of, ordered) for row in stack]


def group_stacks(gallery: Gallery, cluster_of: Ints, rows: Sequence[int]) -> list[list[int]]:
    """The rows with their near-duplicates of the same cluster, at the place of the first of them.

    Only near-duplicates that are among the rows count.
    """
    stack = gallery.stack
    groups: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        groups.setdefault((int(stack[row]), int(cluster_of[row])), []).append(row)
    return list(groups.values())


def describe_stacks(
    console: Console, window: int, rows: Sequence[int], classes: Classes | None = None
) -> list[dict[str, Any]]:
    """The first instance of each stack of near-duplicates, with the rows of its stack."""
    opened = console.open(window)
    stacks = group_stacks(opened.gallery, opened.state.cluster_of, rows)
    first = describe_instances(console, window, [stack[0] for stack in stacks], classes)
    return [one | {"rows": stack} for one, stack in zip(first, stacks, strict=True)]


def describe_examples(
    console: Console, window: int, rows: Sequence[int], classes: Classes | None = None
) -> list[dict[str, Any]]:
    """Instances, each with the rows of all its near-duplicates in its cluster."""
    stacks = [find_stack(console.open(window), row) for row in rows]
    described = describe_instances(console, window, rows, classes)
    return [one | {"rows": stack} for one, stack in zip(described, stacks, strict=True)]


def find_stack(opened: OpenWindow, row: int) -> list[int]:
    """An instance and its near-duplicates in its cluster, the instance first."""
    cluster_of, stack = opened.state.cluster_of, opened.gallery.stack
    same = np.flatnonzero((stack == stack[row]) & (cluster_of == cluster_of[row])).tolist()
    return [row, *(other for other in same if other != row)]


def end_of_page(console: Console, window: int, rows: Sequence[int], end: int) -> int:
    """The end of a page of rows, moved so that it parts no stack of near-duplicates."""
    opened = console.open(window)
    cluster_of, stack = opened.state.cluster_of, opened.gallery.stack

    def is_same(one: int, other: int) -> bool:
        return bool(stack[one] == stack[other] and cluster_of[one] == cluster_of[other])

    while 0 < end < len(rows) and is_same(rows[end - 1], rows[end]):
        end += 1
    return min(end, len(rows))


def describe_instances(
    console: Console, window: int, rows: Sequence[int], classes: Classes | None = None
) -> list[dict[str, Any]]:
    """Instances with their clusters; ``cluster`` is None for known instances."""
    opened, classes = console.open(window), classes or console.classes()
    gallery, cluster_of = opened.gallery, opened.state.cluster_of
    return [
        {
            "row": row,
            "identity": gallery.ids[row],
            "cluster": None if cluster_of[row] == KNOWN else int(cluster_of[row]) + 1,
            "nearest": classes.display_label(str(gallery.label[row])),
            "name": _name_of(opened, classes, int(cluster_of[row])),
            "novelty": round(float(gallery.novelty[row]), 6),
            "source": str(gallery.source[row]),
            "text": gallery.excerpt(row),
        }
        for row in rows
    ]


def _name_of(opened: OpenWindow, classes: Classes, number: int) -> str | None:
    cluster = opened.state.clusters.get(number)
    return None if cluster is None or cluster.name is None else classes.display(cluster.name)


def inspect_instance(console: Console, window: int, row: int) -> dict[str, Any]:
    """An instance with its whole text, its history and its near-duplicates."""
    opened = console.open(window)
    if row >= len(opened.gallery.ids):
        raise NotFound(f"row {row} does not exist.")
    (described,) = describe_instances(console, window, [row])
    rows = find_stack(opened, row)
    whole = opened.gallery.whole(row) if opened.gallery.form == TEXTS else None
    text = described["text"] if whole is None else whole.decode()
    return described | {"text": text, "rows": rows, "history": trace_instance(opened, row)}


def trace_instance(opened: OpenWindow, row: int) -> list[dict[str, Any]]:
    """The changes that concern an instance since it was detected, the first one first."""
    with opened.lock:
        events, undone = list(opened.events), opened.undone
    start = find_start(events, undone)  # rows of an earlier detection are other instances
    number, lines = int(opened.gallery.cluster[row]), []
    for event in events:
        if event.seq < start:
            continue
        patch = Patch.from_json(event.patch)
        moved = next((move for move in patch.moves if row in move.rows), None)
        if moved is not None or number in patch.clusters or row in patch.opinions:
            lines.append(
                {
                    "sentence": describe_event(event.verb, event.about),
                    "person": event.person or "somebody",
                    "time": event.time,
                    "undone": event.seq in undone,
                }
            )
        number = number if moved is None else moved.target
    return lines


def list_similar(console: Console, window: int, row: int, most: int) -> dict[str, Any]:
    """The instances most similar to one: in the window, and among those that the model keeps."""
    opened, classes = console.open(window), console.classes()
    if row >= len(opened.gallery.ids):
        raise NotFound(f"row {row} does not exist.")
    to = opened.gallery.embedding[row]
    rows, cosine = find_similar(opened.gallery.directions, to, most + 1)
    score = dict(zip(rows.tolist(), cosine.tolist(), strict=True))
    score.pop(row, None)
    here = describe_stacks(console, window, list(score)[:most], classes)
    known = console.known_gallery(window)
    kept: list[dict[str, Any]] = []
    if known is not None:
        rows, cosine = find_similar(known.directions, opened.gallery.features[row], most)
        kept = [
            {
                "row": r,
                "name": classes.display_label(str(known.label[r])),
                "similarity": round(c, 4),
                "text": known.excerpt(r),
                "has_picture": known.has_pictures,
            }
            for r, c in zip(rows.tolist(), cosine.tolist(), strict=True)
        ]
    return {
        "window": [one | {"similarity": round(score[one["row"]], 4)} for one in here],
        "known": kept,
    }


def suggest_queries(console: Console, window: int, strategy: str) -> dict[str, Any]:
    """The budget, and the rows of open clusters to query first."""
    row, opened = console.window(window), console.open(window)
    with opened.lock:
        sizes = opened.state.sizes()
        clusters = opened.state.clusters.items()
        numbers = [n for n, cluster in clusters if cluster.is_unnamed and sizes[n]]
        cluster_of = opened.state.cluster_of.copy()
        n_answers = opened.n_answers
    left = max(0, row.budget - n_answers)
    rows: list[int] = []
    if numbers and left:
        rows = _choose_queries(opened.gallery, cluster_of, numbers, left, strategy)
    return {"budget": row.budget, "answers": n_answers, "left": left, "rows": rows}


def summarize_opinions(console: Console, window: int) -> dict[str, Any]:
    """The second opinions: the rows that wait for one, and how many agree with the labels.

    The label of an instance is the name that people gave it, or the known class that the model
    predicts. Novel instances without a name have none yet, and do not count. Neither does what a
    person says about a label of their own.
    """
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        opinions, labels = dict(opened.state.opinions), opened.labels
        cluster_of = opened.state.cluster_of.copy()
        own = find_own_opinions(opened)
    known = {
        row: classes.key_of_label(str(opened.gallery.label[row]))
        for row in opinions
        if cluster_of[row] == KNOWN
    }
    present = known | labels
    answered = {row: key for row, key in opinions.items() if key and row in present}
    given = {row: key for row, key in answered.items() if row not in own}
    others = [row for row, key in given.items() if present[row] != key]
    described = describe_instances(console, window, others, classes)
    return {
        "waiting": [row for row, key in opinions.items() if not key],
        "n_given": len(given),
        "n_own": len(answered) - len(given),
        "n_agreeing": len(given) - len(others),
        "disagreements": [
            one
            | {
                "label": classes.display(present[one["row"]]),
                "opinion": classes.display(given[one["row"]]),
            }
            for one in described
        ],
    }


def find_own_opinions(opened: OpenWindow) -> set[int]:
    """The rows whose label and second opinion come from the same person.

    The label of a row comes from whoever moved the row, or named its cluster, last. People who do
    not say who they are count as one.
    """
    events, undone = opened.events, opened.undone
    labeller: dict[int, tuple[int, str]] = {}  # row -> the last event that moved it, and its person
    namer: dict[int, tuple[int, str]] = {}  # cluster -> the last event that named it
    opinion_of: dict[int, str] = {}  # row -> person
    for event in events:
        if event.seq in undone or event.seq <= opened.start:
            continue
        patch, who = Patch.from_json(event.patch), (event.seq, event.person)
        for move in patch.moves:
            labeller |= dict.fromkeys(move.rows, who)
        for number, (before, after) in patch.clusters.items():
            if after is not None and after.name != (before and before.name):
                namer[number] = who
        opinion_of |= {row: event.person for row, (_, given) in patch.opinions.items() if given}
    own = set()
    for row, person in opinion_of.items():
        number = int(opened.state.cluster_of[row])
        made = [one for one in (labeller.get(row), namer.get(number)) if one is not None]
        if number != KNOWN and made and max(made)[1] == person:
            own.add(row)
    return own


def list_labels(console: Console, window: int, pictures: str = "") -> list[LabelRow]:
    """All instances of a window for export; ``pictures`` is the address of their images."""
    opened, classes = console.open(window), console.classes()
    gallery, is_text = opened.gallery, opened.gallery.form == TEXTS
    with opened.lock:
        labels = opened.labels
        cluster_of = opened.state.cluster_of.tolist()
    return [
        LabelRow(
            identity=gallery.ids[row],
            label=classes.display(labels[row]) if row in labels else "",
            predicted=classes.display_label(str(gallery.label[row])) if number == KNOWN else "",
            cluster=None if number == KNOWN else number + 1,
            novelty=round(float(gallery.novelty[row]), 6),
            text=gallery.excerpt(row),
            image="" if is_text else f"{pictures}/{row}.png",
        )
        for row, number in enumerate(cluster_of)
    ]


def _order(cluster: Mapping[str, Any]) -> tuple[int, int, int]:
    statuses = {OPEN: 0 if cluster["name"] is None else 1, SKIPPED: 2, REJECTED: 3}
    return statuses[cluster["status"]], -cluster["size"], cluster["cluster"]


def _choose_queries(
    gallery: Gallery, cluster_of: Ints, numbers: Sequence[int], most: int, strategy: str
) -> list[int]:
    """At most so many rows, from each cluster in turn."""
    cluster = np.full(len(cluster_of), KNOWN)
    for place, number in enumerate(numbers):
        cluster[cluster_of == number] = place
    # Members of all other clusters are not queried, but they are classes to be near to.
    detection = Detection(
        novelty=gallery.novelty, label=gallery.label, cluster=cluster, n_novel=len(numbers),
        curve={}, embedding=gallery.embedding,
    )  # fmt: skip
    each = -(-most // len(numbers))
    queries = choose_queries(detection, each, strategy=strategy, seed=SEED, window=0)
    turns = [queries[cluster[queries] == place].tolist() for place in range(len(numbers))]
    rows = [turn[i] for i in range(each) for turn in turns if i < len(turn)]
    return [int(row) for row in rows[:most]]
