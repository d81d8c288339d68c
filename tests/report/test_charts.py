from __future__ import annotations

import base64
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.core import WindowRecord
from cilf.evaluate.records import RunFolder, Snapshot
from cilf.report import charts, exemplars, scatter
from cilf.report.run import Run
from cilf.report.svg import element


@pytest.fixture
def run(digits_run: RunFolder) -> Run:
    return Run.read(digits_run)


@pytest.fixture
def last(run: Run) -> Snapshot:
    drawing = run.drawing(4)
    assert drawing is not None
    return drawing


def classed(svg: str, name: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(svg).iter() if name in e.get("class", "").split()]


def test_elements_escape_text_and_attributes() -> None:
    assert element("t", "<&", a='"') == '<t a="&quot;">&lt;&amp;</t>'
    assert element("g", element("t")) == "<g><t></t></g>"


def test_counts_stand_beside_the_truth(run: Run) -> None:
    svg = charts.plot_counts(run.records)
    values = [e.text for e in classed(svg, "value")]
    assert values == ["2", "2", "0", "0", "2", "0", "5", "4"]
    assert [e.text for e in classed(svg, "verdict")] == [
        "✓ exact",
        "✓ exact",
        "\N{MINUS SIGN}2",
        "\N{MINUS SIGN}1",
    ]


def test_an_undefined_metric_leaves_a_gap(run: Run) -> None:
    svg = charts.plot_metric(run.records, "auroc", "AUROC")
    assert [e.text for e in classed(svg, "gap")] == ["n/a"]
    lines = [e.get("d", "") for e in classed(svg, "line")]
    assert [path.count(" ") for path in lines] == [2]  # windows 3 and 4; window 1 stands alone
    assert len(classed(svg, "dot")) == 3


def test_a_metric_that_is_never_defined_still_draws(run: Run) -> None:
    quiet: list[WindowRecord] = [run.records[1]]
    assert not classed(charts.plot_metric(quiet, "auroc", "AUROC"), "dot")


def test_map_draws_every_instance_inside_the_page_and_crosses_the_wrong_ones(
    run: Run, last: Snapshot
) -> None:
    svg = scatter.plot_embedding(last, 4, run.styles)
    points = classed(svg, "pt")
    assert len(points) == len(last.ids)
    assert len(classed(svg, "wrong")) == 43  # 20 misplaced 4s, 20 missed 9s, 3 stray 8s
    assert len(classed(svg, "novel")) == int(last.novel.sum())
    places = [(float(c.get("cx", "0")), float(c.get("cy", "0"))) for c in classed(svg, "known")]
    assert all(0 < x < scatter.WIDTH and 0 < y < scatter.HEIGHT for x, y in places)


def test_map_outlines_and_numbers_what_was_found(run: Run, last: Snapshot) -> None:
    svg = scatter.plot_embedding(last, 4, run.styles)
    assert len(classed(svg, "hull")) == 4
    assert [b[2].text for b in classed(svg, "badge")] == ["1", "2", "3", "4"]


def test_hovering_tells_identity_truth_and_finding(run: Run, last: Snapshot) -> None:
    titles = [p[0].text or "" for p in classed(scatter.plot_embedding(last, 4, run.styles), "pt")]
    first_two = int(np.flatnonzero(last.truth == 2)[0])
    assert f"{last.ids[first_two]}\ntrue class: 2 (new)\nfound: new class 1" in titles
    assert any(t.endswith("true class: 3\nfound: known: 3") for t in titles)


@pytest.mark.parametrize("places", [[[1, 1]], [[1, 1], [1, 1]], [[0, 0], [1, 1], [2, 2], [3, 3]]])
def test_clusters_without_an_area_get_a_circle(
    run: Run, last: Snapshot, places: list[list[float]]
) -> None:
    n = len(places)
    few = Snapshot(
        ids=last.ids[:n], map=np.array(places, dtype=np.float32), truth=np.full(n, 2),
        novel=np.ones(n, dtype=bool), label=np.full(n, 3), cluster=np.zeros(n, dtype=np.int64),
        novelty=last.novelty[:n], thumbnails=last.thumbnails[:n], matched=np.array(["2"]),
        sizes=np.array([n]), texts=last.texts[:n],
    )  # fmt: skip
    (outline,) = classed(scatter.plot_embedding(few, 1, run.styles), "hull")
    assert outline.tag == "circle"


def test_sheets_show_wrong_members_in_proportion(run: Run, last: Snapshot) -> None:
    mixed, _, _, unmatched = exemplars.select_exemplars(last, run.styles)
    assert [m.right for m in mixed.exemplars] == [True] * 20 + [False] * 12
    assert mixed.more == 0
    assert mixed.strangers == [("4", 12)]
    assert mixed.style == run.styles["2"]
    assert unmatched.style is None
    assert {m.truth for m in unmatched.exemplars} == {"4"}


def test_a_large_cluster_is_cut_evenly(
    run: Run, last: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exemplars, "MAX_EXEMPLARS", 8)
    mixed = exemplars.select_exemplars(last, run.styles)[0]
    assert (len(mixed.exemplars), mixed.more) == (8, 24)
    assert sum(m.right for m in mixed.exemplars) == 5  # 20 of 32


def test_missed_instances_are_those_of_new_classes_called_known(last: Snapshot) -> None:
    missed = exemplars.select_missed(last)
    assert missed.classes == [("9", 20)]
    assert {m.truth for m in missed.exemplars} == {"9"}
    assert {m.nearest for m in missed.exemplars} == {"3"}


def test_of_texts_fewer_are_shown(
    run: Run, make_run: Callable[..., RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = make_run(tmp_path, texts=True).read_snapshot(4)
    assert drawing is not None
    monkeypatch.setattr(exemplars, "MAX_TEXTS", 5)
    mixed = exemplars.select_exemplars(drawing, run.styles)[0]
    assert (mixed.form, len(mixed.exemplars), mixed.more) == ("texts", 5, 27)
    assert len(exemplars.select_missed(drawing).exemplars) == 5
    assert mixed.exemplars[0].text == drawing.texts[np.flatnonzero(drawing.truth == 2)[0]]
    assert not any(member.image for member in mixed.exemplars)


def test_hovering_over_a_text_begins_with_it(run: Run, last: Snapshot) -> None:
    told = replace(last, texts=np.full(len(last.ids), "Once <upon> a time"))
    points = classed(scatter.plot_embedding(told, 4, run.styles), "pt")
    assert len(points) == len(last.ids)
    titles = [p[0].text or "" for p in points]
    assert f"Once <upon> a time\n{last.ids[0]}\ntrue class: 3\nfound: known: 3" in titles
    assert all(title.startswith("Once <upon> a time\n") for title in titles)


def test_thumbnails_keep_their_pixels() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    assert np.array_equal(decoded(exemplars.encode_thumbnail(grey)), grey)
    colour = np.stack([grey, grey.T, 255 - grey], axis=-1)
    assert np.array_equal(decoded(exemplars.encode_thumbnail(colour)), colour)
    assert (
        decoded(exemplars.encode_thumbnail(np.zeros((100, 60, 3), dtype=np.uint8))).shape[0] == 48
    )


def decoded(uri: str) -> np.ndarray:
    packed = uri.removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))))


def test_a_few_strays_do_not_blow_up_an_outline() -> None:
    tight = np.random.default_rng(0).normal(size=(40, 2))
    strays = np.array([[100.0, 0.0], [0.0, 100.0]])
    assert np.array_equal(scatter._core(np.concatenate([tight, strays])), tight)
