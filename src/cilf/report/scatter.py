"""The scatter plot of a window: each instance where the embedding puts it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from cilf.core.types import Array, Floats
from cilf.evaluate.records import Snapshot
from cilf.report.class_style import ClassStyle
from cilf.report.clusters import Cluster, find_correct, list_clusters, to_text
from cilf.report.svg import Svg, closed_path, element, group, label

WIDTH, HEIGHT, MARGIN = 520.0, 420.0, 26.0
MAX_NAMED = 20  # classes whose names are on the map; more would cover it
NAME_REACH = 40.0  # how far from the middle of a class its name may be
MAX_DISTANCE = 3.0  # in median distances from the middle; outlines leave out what is farther


def plot_embedding(snapshot: Snapshot, window: int, styles: Mapping[str, ClassStyle]) -> Svg:
    """Plot a window: discs are known classes, rings novel ones, dashed outlines clusters."""
    places = _fit_to_page(snapshot.map)
    found = list_clusters(snapshot)
    points = _points(snapshot, places, styles, found)
    outlines = [_outline(places[c.members], c) for c in found if len(c.members)]
    badges = [_badge(places[c.members], c) for c in found if len(c.members)]
    named = _class_names(snapshot, places)
    title = f"Map of window {window}: {len(places)} instances, {len(found)} clusters"
    return element(
        "svg", *outlines, *points, *named, *badges, class_="map", role="img", aria_label=title,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
    )  # fmt: skip


def _fit_to_page(map_: Floats) -> Array:
    """Scaled into the page, both axes alike: distances on the map keep their meaning."""
    low, high = map_.min(axis=0), map_.max(axis=0)
    room = np.array([WIDTH, HEIGHT]) - 2 * MARGIN
    scale = float(np.min(room / np.maximum(high - low, 1e-9)))
    centred: Array = (np.asarray(map_, dtype=np.float64) - (low + high) / 2) * scale
    return centred * (1, -1) + (WIDTH / 2, HEIGHT / 2)


def _points(
    snapshot: Snapshot, places: Array, styles: Mapping[str, ClassStyle], found: list[Cluster]
) -> list[Svg]:
    truth, correct = to_text(snapshot.truth), find_correct(snapshot)
    # Novel instances are plotted on top: they are fewer and matter more.
    order = np.argsort(snapshot.novel, kind="stable").tolist()
    points = []
    for i in order:
        hover = element("title", _describe(snapshot, i, found))
        style, (x, y) = styles[truth[i]], places[i].tolist()
        novel = bool(snapshot.novel[i])
        shape = style.plot(x, y, 4.4 if novel else 3.4, class_="novel" if novel else "known")
        cross = () if correct[i] else (_cross(x, y),)
        points.append(group(hover, shape, *cross, class_="pt"))
    return points


def _class_names(snapshot: Snapshot, places: Array) -> list[Svg]:
    """Put the name of each class above its instances; those of novel classes are bold."""
    truth = to_text(snapshot.truth)
    present = np.unique(truth).tolist()
    if len(present) > MAX_NAMED:
        return []
    novel = set(truth[snapshot.novel].tolist())
    return [_class_name(name, places[truth == name], name in novel) for name in present]


def _class_name(name: str, places: Array, novel: bool) -> Svg:
    core = _core(places)
    x, middle = np.median(core, axis=0).tolist()
    top = max(float(core[:, 1].min()), middle - NAME_REACH)
    y = max(14.0, top - 10)
    short = name if len(name) <= 14 else name[:13] + "…"
    return label(short, x, y, class_="name bold" if novel else "name")


def _describe(snapshot: Snapshot, i: int, found: list[Cluster]) -> str:
    cluster = int(snapshot.cluster[i])
    novel = " (novel)" if snapshot.novel[i] else ""
    known = f"known: {snapshot.label[i]}"
    detected = f"cluster {found[cluster].number}" if cluster >= 0 else known
    excerpt = f"{snapshot.texts[i]}\n" if snapshot.texts[i] else ""
    return (
        f"{excerpt}{snapshot.ids[i]}\ntrue class: {snapshot.truth[i]}{novel}\ndetected: {detected}"
    )


def _cross(x: float, y: float) -> Svg:
    arms = f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6"
    return element("path", class_="wrong", d=arms)


def _outline(places: Array, cluster: Cluster) -> Svg:
    hover = element("title", f"Cluster {cluster.number}: {cluster.size} instances")
    core = _core(places)
    try:
        corners = core[ConvexHull(core).vertices]
    except (QhullError, ValueError):  # fewer than three places, or all on a line
        x, y = core.mean(axis=0).tolist()
        return element("circle", hover, class_="hull", cx=x, cy=y, r=16)
    centre = corners.mean(axis=0)
    away = corners - centre
    length = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
    wider = centre + away * (1 + 9 / length)
    return element("path", hover, class_="hull", d=closed_path([(x, y) for x, y in wider.tolist()]))


def _core(places: Array) -> Array:
    distance = np.linalg.norm(places - np.median(places, axis=0), axis=1)
    return np.asarray(places[distance <= MAX_DISTANCE * np.median(distance)])


def _badge(places: Array, cluster: Cluster) -> Svg:
    x, y = np.median(places, axis=0).tolist()
    return group(
        element("title", f"Cluster {cluster.number}"),
        element("circle", cx=x, cy=y, r=11),
        label(str(cluster.number), x, y + 4.6),
        class_="badge",
    )
