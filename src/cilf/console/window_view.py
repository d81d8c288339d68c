"""Views of a window: clusters, members, queries and labels. Clusters are counted from 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cilf.console.classes import Classes
from cilf.console.gallery import TEXTS, Exemplars, Gallery, choose_exemplars
from cilf.console.import_export import LabelRow
from cilf.console.service import Console, NotFound, OpenWindow
from cilf.console.state import KNOWN, OPEN, REJECTED, SKIPPED, Cluster
from cilf.core import Detection
from cilf.core.types import Ints
from cilf.query.strategies import choose_queries

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


def list_members(
    console: Console,
    window: int,
    cluster: int | None = None,
    label: str | None = None,
    *,
    start: int = 0,
    most: int,
) -> tuple[int, list[int]]:
    """The number of members, and a page of their rows.

    Args:
        cluster: only members of this cluster; 0 is the known instances.
        label: only instances that are predicted as this class.

    The most typical members of a cluster come first, and the least novel known instances.
    """
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        everything = np.arange(len(opened.state.cluster_of))
        rows = everything if cluster is None else opened.state.members(cluster - 1)
    if label is not None:
        names = [classes.display_label(str(name)) for name in opened.gallery.label[rows]]
        rows = rows[np.array(names, dtype=object) == label]
    return len(rows), _typical_first(opened.gallery, rows, cluster)[start : start + most]


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
            "novelty": round(float(gallery.novelty[row]), 6),
            "source": str(gallery.source[row]),
            "text": gallery.excerpt(row),
        }
        for row in rows
    ]


def suggest_queries(console: Console, window: int, strategy: str) -> dict[str, Any]:
    """The budget, and the rows of open clusters to query first."""
    row, opened = console.window(window), console.open(window)
    with opened.lock:
        sizes = opened.state.sizes()
        clusters = opened.state.clusters.items()
        numbers = [n for n, cluster in clusters if cluster == Cluster() and sizes[n]]
        cluster_of = opened.state.cluster_of.copy()
        n_answers = opened.n_answers
    left = max(0, row.budget - n_answers)
    rows: list[int] = []
    if numbers and left:
        rows = _choose_queries(opened.gallery, cluster_of, numbers, left, strategy)
    return {"budget": row.budget, "answers": n_answers, "left": left, "rows": rows}


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


def _typical_first(gallery: Gallery, rows: Ints, cluster: int | None) -> list[int]:
    if not len(rows):
        return []
    if not cluster:
        order = np.argsort(gallery.novelty[rows], kind="stable")
    else:
        points = gallery.embedding[rows].astype(np.float64)
        order = np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")
    typical: list[int] = rows[order].tolist()
    return typical


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
