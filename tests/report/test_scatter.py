from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cilf.evaluate.records import Snapshot
from cilf.report import scatter
from cilf.report.run import Run
from cilf.report.scatter import plot_embedding


def test_map_draws_every_instance_inside_the_page_and_crosses_the_wrong_ones(
    find_class: Any, run: Run, last: Snapshot
) -> None:
    svg = plot_embedding(last, 4, run.styles)
    points = find_class(svg, "pt")
    assert len(points) == len(last.ids)
    assert len(find_class(svg, "wrong")) == 43  # 20 misplaced 4s, 20 missed 9s, 3 stray 8s
    assert len(find_class(svg, "novel")) == int(last.novel.sum())
    places = [(float(c.get("cx", "0")), float(c.get("cy", "0"))) for c in find_class(svg, "known")]
    assert all(0 < x < scatter.WIDTH and 0 < y < scatter.HEIGHT for x, y in places)


def test_map_outlines_and_numbers_what_was_found(find_class: Any, run: Run, last: Snapshot) -> None:
    svg = plot_embedding(last, 4, run.styles)
    assert len(find_class(svg, "hull")) == 4
    assert [b[2].text for b in find_class(svg, "badge")] == ["1", "2", "3", "4"]


def test_hovering_tells_identity_truth_and_finding(
    find_class: Any, run: Run, last: Snapshot
) -> None:
    titles = [p[0].text or "" for p in find_class(plot_embedding(last, 4, run.styles), "pt")]
    first_two = int(np.flatnonzero(last.truth == 2)[0])
    assert f"{last.ids[first_two]}\ntrue class: 2 (novel)\ndetected: cluster 1" in titles
    assert any(t.endswith("true class: 3\ndetected: known: 3") for t in titles)


@pytest.mark.parametrize("places", [[[1, 1]], [[1, 1], [1, 1]], [[0, 0], [1, 1], [2, 2], [3, 3]]])
def test_clusters_without_an_area_get_a_circle(
    find_class: Any, run: Run, last: Snapshot, places: list[list[float]]
) -> None:
    n = len(places)
    few = Snapshot(
        ids=last.ids[:n], map=np.array(places, dtype=np.float32), truth=np.full(n, 2),
        novel=np.ones(n, dtype=bool), label=np.full(n, 3), cluster=np.zeros(n, dtype=np.int64),
        novelty=last.novelty[:n], thumbnails=last.thumbnails[:n], matched=np.array(["2"]),
        sizes=np.array([n]), texts=last.texts[:n],
    )  # fmt: skip
    (outline,) = find_class(plot_embedding(few, 1, run.styles), "hull")
    assert outline.tag == "circle"


def test_hovering_over_a_text_begins_with_it(find_class: Any, run: Run, last: Snapshot) -> None:
    told = replace(last, texts=np.full(len(last.ids), "Once <upon> a time"))
    points = find_class(plot_embedding(told, 4, run.styles), "pt")
    assert len(points) == len(last.ids)
    titles = [p[0].text or "" for p in points]
    assert f"Once <upon> a time\n{last.ids[0]}\ntrue class: 3\ndetected: known: 3" in titles
    assert all(title.startswith("Once <upon> a time\n") for title in titles)


def test_a_few_strays_do_not_blow_up_an_outline() -> None:
    tight = np.random.default_rng(0).normal(size=(40, 2))
    strays = np.array([[100.0, 0.0], [0.0, 100.0]])
    assert np.array_equal(scatter._core(np.concatenate([tight, strays])), tight)


def test_names_of_novel_classes_are_bold(find_class: Any, run: Run, last: Snapshot) -> None:
    svg = plot_embedding(last, 4, run.styles)
    names = {str(name) for name in last.truth.tolist()}
    assert {e.text for e in find_class(svg, "name")} == names
    novel = {str(name) for name in last.truth[last.novel].tolist()}
    assert {e.text for e in find_class(svg, "bold")} == novel < names
