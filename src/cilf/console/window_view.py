"""What there is to see of a window: its groups, the members of each, and what is worth asking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cilf.console.classes import Classes
from cilf.console.gallery import TEXTS, Corners, Gallery, corners
from cilf.console.import_export import Labelled
from cilf.console.service import SEED, Console, NotThere, Opened
from cilf.console.state import KNOWN, OPEN, REJECTED, SKIPPED, Group
from cilf.core import Detection
from cilf.core.types import Ints
from cilf.query.strategies import choose_queries


def groups(console: Console, window: int) -> list[dict[str, Any]]:
    """What there is to know about each group: open ones first, large ones first."""
    opened, classes = console.opened(window), console.classes()
    with opened.lock:
        sizes = opened.state.sizes()
        found = [
            _group(opened, classes, number, group, sizes[number])
            for number, group in opened.state.groups.items()
        ]
    return sorted(found, key=_order)


def _group(
    opened: Opened, classes: Classes, number: int, group: Group, size: int
) -> dict[str, Any]:
    members = opened.state.members(number)
    looks = Counter(opened.gallery.label[members].tolist()).most_common(1)
    return {
        "group": number,
        "name": None if group.name is None else classes.display(group.name),
        "status": group.status,
        "size": size,
        "nearest": classes.shown(str(looks[0][0])) if looks else None,
        "changed": opened.state.changed.get(number, 0),
    }


def sheet(console: Console, window: int, group: int) -> Corners:
    """The members that are on the contact sheet of a group."""
    opened = console.opened(window)
    with opened.lock:
        members = opened.state.members(group)
    if not len(members):
        raise NotThere(f"group {group + 1} is not there.")
    return corners(opened.gallery.embedding, members, seed=SEED)


def known(console: Console, window: int) -> dict[str, int]:
    """Known class, as it is called now -> how many instances were taken for it."""
    opened, classes = console.opened(window), console.classes()
    with opened.lock:
        labels = opened.gallery.label[opened.state.group_of == KNOWN]
    return {
        classes.shown(str(label)): count for label, count in Counter(labels.tolist()).most_common()
    }


def members(
    console: Console, window: int, group: int | None, label: str | None, start: int, most: int
) -> tuple[int, list[int]]:
    """How many instances a group (or a known class in it) has, and a page of them.

    The most typical ones come first in a group, the least novel ones among the known.
    """
    opened, classes = console.opened(window), console.classes()
    with opened.lock:
        rows = (
            np.arange(len(opened.state.group_of)) if group is None else opened.state.members(group)
        )
    if label is not None:
        shown = [classes.shown(str(name)) == label for name in opened.gallery.label[rows]]
        rows = rows[np.array(shown, dtype=bool)]
    return len(rows), _typical_first(opened.gallery, rows, group)[start : start + most]


def instance(opened: Opened, classes: Classes, row: int) -> dict[str, Any]:
    """What there is to know about an instance."""
    gallery = opened.gallery
    group = int(opened.state.group_of[row])
    return {
        "row": row,
        "identity": gallery.ids[row],
        "group": None if group == KNOWN else group,
        "nearest": classes.shown(str(gallery.label[row])),
        "novelty": round(float(gallery.novelty[row]), 6),
        "text": gallery.excerpt(row),
    }


def ask(console: Console, window: int, strategy: str) -> dict[str, Any]:
    """The budget, and the instances of open groups that are worth asking first."""
    row, opened = console.window(window), console.opened(window)
    with opened.lock:
        open_groups = [
            number
            for number, group in opened.state.groups.items()
            if group == Group() and len(opened.state.members(number))
        ]
        group_of = opened.state.group_of.copy()
        spent = opened.spent
    left = max(0, row.budget - spent)
    rows: list[int] = []
    if open_groups and left:
        rows = _asked(opened.gallery, group_of, open_groups, left, strategy)
    return {"budget": row.budget, "spent": spent, "left": left, "rows": rows}


def labelled(console: Console, window: int, pictures: str) -> list[Labelled]:
    """Everything about a window that can go elsewhere; ``pictures`` is where images are."""
    opened, classes = console.opened(window), console.classes()
    gallery = opened.gallery
    with opened.lock:
        named = opened.taught
        group_of = opened.state.group_of.copy()
    texts = gallery.form == TEXTS
    return [
        Labelled(
            identity=identity,
            label=classes.display(named[row]) if row in named else "",
            predicted="" if group_of[row] != KNOWN else classes.shown(str(gallery.label[row])),
            group=None if group_of[row] == KNOWN else int(group_of[row]) + 1,
            novelty=round(float(gallery.novelty[row]), 6),
            text=gallery.excerpt(row) if texts else "",
            image="" if texts else f"{pictures}/{row}.png",
        )
        for row, identity in enumerate(gallery.ids)
    ]


def _order(group: Mapping[str, Any]) -> tuple[int, int, int]:
    statuses = {OPEN: 0 if group["name"] is None else 1, SKIPPED: 2, REJECTED: 3}
    return statuses[group["status"]], -group["size"], group["group"]


def _typical_first(gallery: Gallery, rows: Ints, group: int | None) -> list[int]:
    if not len(rows):
        return []
    if group is None or group == KNOWN:
        order = np.argsort(gallery.novelty[rows], kind="stable")
    else:
        points = gallery.embedding[rows].astype(np.float64)
        order = np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")
    typical: list[int] = rows[order].tolist()
    return typical


def _asked(
    gallery: Gallery, group_of: Ints, groups: Sequence[int], most: int, strategy: str
) -> list[int]:
    """At most so many rows, from each group in turn."""
    cluster = np.full(len(group_of), KNOWN)
    for place, number in enumerate(groups):
        cluster[group_of == number] = place
    # Members of groups that are done are no question any more, but they are a class to be near to.
    believed = Detection(
        novelty=gallery.novelty, label=gallery.label, cluster=cluster, n_novel=len(groups),
        curve={}, embedding=gallery.embedding,
    )  # fmt: skip
    each = -(-most // len(groups))
    chosen = choose_queries(believed, each, strategy=strategy, seed=SEED, window=0)
    turns = [chosen[cluster[chosen] == place].tolist() for place in range(len(groups))]
    rows = [turn[i] for i in range(each) for turn in turns if i < len(turn)]
    return [int(row) for row in rows[:most]]
