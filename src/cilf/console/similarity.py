"""Similar instances, likely classes and uncertain instances, by the embedding of a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cilf.console.gallery import scale_to_unit
from cilf.console.service import Console, OpenWindow
from cilf.console.state import KNOWN, OPEN
from cilf.core.types import Array, Floats, Ints

MOST_LIKELY = 10  # classes, one for each digit key


def find_similar(directions: Floats, to: Floats, most: int) -> tuple[Ints, Floats]:
    """The rows most similar to a vector and their cosines, the most similar first.

    It is one product of a matrix and a vector, a few milliseconds for 100,000 rows.

    >>> directions = np.eye(3, dtype=np.float32)
    >>> rows, cosine = find_similar(directions, np.array([1.0, 0.5, 0.0]), 2)
    >>> [(int(row), f"{value:.2f}") for row, value in zip(rows, cosine)]
    [(0, '0.89'), (1, '0.45')]
    """
    unit = scale_to_unit(np.asarray(to, dtype=np.float32)[None])[0]
    cosine = directions @ unit
    most = min(most, len(cosine))
    rows = np.argpartition(cosine, -most)[-most:] if most else np.empty(0, dtype=np.int64)
    rows = rows[np.argsort(-cosine[rows], kind="stable")]
    return rows, np.asarray(cosine[rows])


def rank_classes(console: Console, window: int, rows: Sequence[int]) -> list[tuple[str, float]]:
    """The most likely classes of some instances and their shares, the most likely first.

    A class is likely if the mean of the instances is near to the mean of the class in the
    embedding of the model. The shares of all classes sum to one.
    """
    opened = console.open(window)
    with opened.lock:
        names, centres = find_centres(console, window, opened)
    if not names or not len(rows):
        return []
    mean = opened.gallery.features[list(rows)].mean(axis=0, dtype=np.float64)
    away = ((centres - mean) ** 2).sum(axis=1)
    scale = max(float(np.median(away)), 1e-12)
    share = np.exp(-4 * (away - away.min()) / scale)
    share /= share.sum()
    order = np.argsort(away, kind="stable")[:MOST_LIKELY]
    return [(names[place], float(share[place])) for place in order]


def find_centres(console: Console, window: int, opened: OpenWindow) -> tuple[list[str], Array]:
    """The display names of classes and the mean of each in the embedding of the model.

    A known class is where the model keeps it, else where the window has it. A class that people
    named is where its clusters are.
    """
    classes = console.classes()
    places: dict[str, Array] = {}
    gallery, known = opened.gallery, console.known_gallery(window)
    is_known = opened.state.cluster_of == KNOWN
    _add_means(places, gallery.features, gallery.label, is_known)
    if known is not None:
        _add_means(places, known.embedding, known.label, np.ones(len(known.ids), dtype=bool))
    found = {classes.display_label(label): place for label, place in places.items()}
    for number, cluster in opened.state.clusters.items():
        members = opened.state.members(number)
        if cluster.name is not None and cluster.status == OPEN and len(members):
            name = classes.display(cluster.name)
            found.setdefault(name, gallery.features[members].mean(axis=0, dtype=np.float64))
    return list(found), np.stack(list(found.values())) if found else np.empty((0, 0))


def _add_means(places: dict[str, Array], embedding: Floats, labels: Array, of: Array) -> None:
    for label in np.unique(labels[of]).tolist():
        rows = np.flatnonzero(of & (labels == label))
        places[str(label)] = embedding[rows].mean(axis=0, dtype=np.float64)


def rank_share(values: Floats) -> Array:
    """(n,) the rank of each value as a share, 0 for the lowest and 1 for the highest.

    >>> rank_share(np.array([5.0, 1.0, 3.0])).tolist()
    [1.0, 0.0, 0.5]
    """
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return ranks / max(len(values) - 1, 1)
