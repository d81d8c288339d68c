"""The orders and filters of lists of instances. ``SORTS`` and ``FILTERS`` are their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cilf.console.gallery import Gallery
from cilf.console.state import KNOWN
from cilf.core.types import Array, Bools, Ints

TYPICAL, EVERYTHING = "typical", "everything"  # the first sort and the first filter
UNCERTAIN = 0.8  # of the distance to another class: nearly as near to it as to the own one


class MemberView(NamedTuple):
    """The values of a window that sorts and filters use."""

    gallery: Gallery
    cluster_of: Ints
    names: Mapping[int, str]  # row -> the name that people gave it
    cluster: int | None  # the cluster that is listed, from 1; 0 is the known instances


class Sort(NamedTuple):
    """An order of rows; ``order`` gives the places of the rows in it."""

    title: str
    order: Callable[[MemberView, Ints], Ints]


class Filter(NamedTuple):
    """A filter of rows; ``choose`` gives whether each of them is kept."""

    title: str
    choose: Callable[[MemberView, Ints], Bools]


def _sort_typical(view: MemberView, rows: Ints) -> Ints:
    """Members near the mean of their cluster first, or the least novel instances first."""
    if not view.cluster:
        return np.argsort(view.gallery.novelty[rows], kind="stable")
    points = view.gallery.embedding[rows].astype(np.float64)
    return np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")


def _sort_by_novelty(view: MemberView, rows: Ints) -> Ints:
    return np.argsort(-view.gallery.novelty[rows], kind="stable")


def _sort_by_distance(view: MemberView, rows: Ints) -> Ints:
    away = measure_distance(view.gallery, view.cluster_of)
    return np.argsort(-away[rows], kind="stable")


def _sort_by_name(view: MemberView, rows: Ints) -> Ints:
    names = [view.names.get(row, "") for row in rows.tolist()]
    is_unnamed = np.array([not name for name in names])
    return np.lexsort((view.gallery.novelty[rows], np.array(names), is_unnamed))


def _sort_by_uncertainty(view: MemberView, rows: Ints) -> Ints:
    return np.argsort(-measure_uncertainty(view.gallery, view.cluster_of)[rows], kind="stable")


def _is_anything(_: MemberView, rows: Ints) -> Bools:
    return np.ones(len(rows), dtype=bool)


def _is_novel(view: MemberView, rows: Ints) -> Bools:
    return np.asarray(view.cluster_of[rows] != KNOWN)


def _is_unnamed(view: MemberView, rows: Ints) -> Bools:
    is_named = np.array([row in view.names for row in rows.tolist()])
    return np.asarray(_is_novel(view, rows) & ~is_named)


def _is_uncertain(view: MemberView, rows: Ints) -> Bools:
    return np.asarray(measure_uncertainty(view.gallery, view.cluster_of)[rows] > UNCERTAIN)


SORTS: dict[str, Sort] = {
    TYPICAL: Sort("typical first", _sort_typical),
    "novelty": Sort("most novel first", _sort_by_novelty),
    "distance": Sort("farthest from the centre first", _sort_by_distance),
    "name": Sort("by name", _sort_by_name),
    "uncertain": Sort("most uncertain first", _sort_by_uncertainty),
}
FILTERS: dict[str, Filter] = {
    EVERYTHING: Filter("everything", _is_anything),
    "novel": Filter("novel", _is_novel),
    "unnamed": Filter("novel without a name", _is_unnamed),
    "uncertain": Filter("uncertain", _is_uncertain),
}


def measure_uncertainty(gallery: Gallery, cluster_of: Ints) -> Array:
    """(n,) distance to the own class divided by that to the nearest other one; 1 is undecided.

    Clusters and the known classes of the window are the classes.
    """
    _, own = np.unique(_group(gallery, cluster_of), return_inverse=True)
    own = own.reshape(-1)
    n_classes = int(own.max(initial=-1)) + 1
    if n_classes < 2:
        return np.zeros(len(own))
    points = np.asarray(gallery.embedding, dtype=np.float32)
    centres = np.stack([points[own == place].mean(axis=0) for place in range(n_classes)])
    away = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)
    away = np.sqrt(np.maximum(away, 0))
    here = away[np.arange(len(own)), own]
    away[np.arange(len(own)), own] = np.inf
    return np.asarray(here / np.maximum(away.min(axis=1), 1e-12), dtype=np.float64)


def measure_distance(gallery: Gallery, cluster_of: Ints) -> Array:
    """(n,) distance to the centre of the own cluster or known class."""
    _, own = np.unique(_group(gallery, cluster_of), return_inverse=True)
    points = np.asarray(gallery.embedding, dtype=np.float64)
    away = np.zeros(len(points))
    for place in np.unique(own):
        rows = np.flatnonzero(own.reshape(-1) == place)
        away[rows] = np.linalg.norm(points[rows] - points[rows].mean(axis=0), axis=1)
    return away


def _group(gallery: Gallery, cluster_of: Ints) -> Array:
    """The cluster of each instance, or the known class that it is predicted as."""
    _, label = np.unique(gallery.label, return_inverse=True)
    return np.where(cluster_of == KNOWN, -1 - label.reshape(-1), cluster_of)
