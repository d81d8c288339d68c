from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.benchmark import RunConfig, run_cell
from cilf.errors import BadConfig, BadInput
from cilf.evaluate.records import RunFolder
from cilf.report import page, write_report

MakeRun = Callable[..., RunFolder]
VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Every element with its attributes, the text, and whether tags close in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def one(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = make_run(tmp_path_factory.mktemp("one"))
    return Page(write_report(folder.path))


@pytest.fixture(scope="module")
def several(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("several")
    make_run(root / "cilf" / "seed0")
    make_run(root / "joint" / "seed0", learner="joint", n=2)
    write_report(root)
    return root


def test_the_page_is_whole_and_says_what_it_is(one: Page) -> None:
    assert one.open == []
    assert next(one.all("html"))["lang"] == "en"
    assert "<title>cilf · digits · multiple · seed 0 · cilf report</title>" in one.source
    assert "cilf run --learner cilf --data digits --scenario multiple --seed 0" in one.text
    assert "abc1234" in one.text


def test_nothing_comes_from_outside(one: Page) -> None:
    for tag, attributes in one.elements:
        for key in ("src", "href", "srcset", "data", "action", "xlink:href", "poster"):
            if key in attributes:
                assert attributes[key].startswith(("data:", "#")), (tag, attributes[key])
    assert not re.search(r"url\(|@import|https?://", one.source)
    assert not list(one.all("script"))


def test_every_link_inside_the_page_has_its_target_and_ids_are_unique(several: Path) -> None:
    whole = Page(several / "report.html")
    ids = [a["id"] for _, a in whole.elements if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = {a["href"][1:] for a in whole.all("a")}
    named = {a["aria-labelledby"] for _, a in whole.elements if "aria-labelledby" in a}
    assert (wanted | named) <= set(ids)


def test_pictures_have_words_and_tables_have_heads(one: Page) -> None:
    assert all(image["alt"] for image in one.all("img"))
    snapshots = [a for a in one.all("svg") if a.get("aria-hidden") != "true"]
    assert all(a.get("role") == "img" and a.get("aria-label") for a in snapshots)
    assert all(head.get("scope") in ("row", "col") for head in one.all("th"))


def test_windows_say_what_was_found(one: Page) -> None:
    assert "That is right: every class in this window was known." in one.text
    assert "It missed 2 novel classes, which stay novel until found." in one.text
    assert "matches no class" in one.text
    assert "62 % of its instances belong to it" in one.text
    assert "Instances of other classes: 12 of 4" in one.text
    assert "Missed: 20 of 6 , 20 of 9" in one.text
    wrong = [a for a in one.all("li") if a.get("class") == "wrong"]
    assert len(wrong) == 12 + 3 + 8
    assert sum("does not belong here" in a["alt"] for a in one.all("img")) == len(wrong)


def test_a_finished_run_makes_no_excuse(one: Page) -> None:
    assert "Unfinished" not in one.text


def test_the_page_of_four_windows_stays_small(one: Page) -> None:
    assert len(one.source) < 500_000


def test_names_are_text_whatever_they_hold(
    make_run: MakeRun, words: Callable[[Any], Any], tmp_path: Path
) -> None:
    whole = Page(write_report(make_run(tmp_path, names=words).path))
    assert whole.open == []
    assert not list(whole.all("b"))
    assert '<b>5</b> & "co"' in whole.text


def test_vectors_are_shown_as_strips(make_run: MakeRun, tmp_path: Path) -> None:
    whole = Page(write_report(make_run(tmp_path, vectors=True).path))
    lists = [a.get("class") for a in whole.all("ul")]
    assert "strips" in lists
    assert "images" not in lists


@pytest.fixture(scope="module")
def texts(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(write_report(make_run(tmp_path_factory.mktemp("texts"), texts=True).path))


def test_texts_are_cards_of_text(texts: Page) -> None:
    assert texts.open == []
    lists = [a.get("class") for a in texts.all("ul")]
    assert "texts" in lists
    assert not {"strips", "images"} & set(lists)
    assert not list(texts.all("img"))
    assert "The parcel came late" in texts.text
    assert f"{'long' * 50}…" in texts.text
    assert "got here.…" not in texts.text
    assert "(an empty text)" in texts.text
    assert "✕ true class 4" in texts.text
    assert "true class 6, called 3" in texts.text


def test_texts_and_paths_are_text_whatever_they_hold(texts: Page) -> None:
    assert not list(texts.all("script"))
    assert not list(texts.all("b"))
    assert '<script>alert(1)</script> & "that" was all' in texts.text


def test_a_long_path_is_shortened_and_whole_in_the_title(texts: Page) -> None:
    sources = [a for a in texts.all("p") if a.get("class") == "source"]
    assert sources
    whole = sources[0]["title"]
    assert whole.startswith("reviews/kitchen & <b>bath</b>/2026/spring/digits/")
    assert f"reviews/…{whole[-15:]}" in texts.text


def test_a_picture_of_a_long_path_has_it_whole_in_the_title_only(
    make_run: MakeRun, tmp_path: Path
) -> None:
    folder = make_run(tmp_path, n=1)
    drawn = folder.read_snapshot(1)
    assert drawn is not None
    path = f"{'deep/' * 40}<i>.png"
    folder.write_snapshot(1, replace(drawn, ids=np.full(len(drawn.ids), path)))
    images = list(Page(write_report(tmp_path)).all("img"))
    assert all(image["title"].startswith(f"{path} · ") for image in images)
    assert all(image["alt"].startswith("deep/dee…") for image in images)
    assert all(len(image["alt"]) < 100 for image in images)


def test_names_that_are_no_valid_text_do_not_stop_a_report(
    make_run: MakeRun, tmp_path: Path
) -> None:
    folder = make_run(tmp_path, n=1, texts=True)
    drawn = folder.read_snapshot(1)
    assert drawn is not None
    n = len(drawn.ids)
    odd = replace(drawn, ids=np.full(n, "caf\udce9.txt"), texts=np.full(n, "caf\udce9"))
    folder.write_snapshot(1, odd)
    assert "caf?.txt" in Page(write_report(tmp_path)).text


def test_facts_say_how_many_rows_there_were(one: Page, make_run: MakeRun, tmp_path: Path) -> None:
    assert "rows 1,437 training and 360 test rows classes 10 instance 8 x 8" in one.text
    assert "a part of" not in one.text
    part = {"train_rows": 25000, "test_rows": 10000, "n_classes": 10, "instance_shape": []}
    told = make_run(tmp_path, n=1, dataset=part | {"part_of_rows": [50000, 10000]})
    text = Page(write_report(told.path)).text
    rows = "25,000 training and 10,000 test rows, a part of the original 50,000 and 10,000"
    assert f"Data: {rows}. cilf started from" in text
    assert f"rows {rows} classes 10 instance text" in text


def test_a_run_that_does_not_describe_its_data_has_a_page(
    make_run: MakeRun, tmp_path: Path
) -> None:
    folder = make_run(tmp_path, n=1)
    folder.write_run({k: v for k, v in folder.read_run().items() if k != "dataset"})
    assert "training and" not in Page(write_report(tmp_path)).text


def test_an_unfinished_run_says_so(make_run: MakeRun, tmp_path: Path) -> None:
    whole = Page(write_report(make_run(tmp_path, n=2).path))
    assert "2 of 4 planned windows are recorded" in whole.text


def test_a_run_that_just_began_has_a_page(make_run: MakeRun, tmp_path: Path) -> None:
    whole = Page(write_report(make_run(tmp_path, n=0).path))
    assert "No window is recorded yet." in whole.text
    assert "the learner was given" not in whole.text


def test_windows_without_a_snapshot_say_so(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    (tmp_path / "windows" / "002.npz").unlink()
    assert "The run kept no snapshot of this window." in Page(write_report(folder.path)).text


def test_one_run_gets_a_table_of_windows(make_run: MakeRun, tmp_path: Path) -> None:
    assert write_report(str(make_run(tmp_path).path)) == tmp_path / "report.html"
    lines = (tmp_path / "windows.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("window,true K,found K,H,AKS,AUS,NA")
    assert lines[2].startswith("2,0,0,,0.95,,,,0.98,0.95,0,")
    assert {p.suffix for p in tmp_path.glob("windows.*")} == {".md", ".csv", ".tex"}


def test_several_runs_get_an_overview_and_a_section_each(several: Path) -> None:
    whole = Page(several / "report.html")
    assert whole.open == []
    assert len(list(whole.all("details"))) == 2
    lines = (several / "runs.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines] == ["run", "joint/seed0", "cilf/seed0"]
    assert "0.951" in (several / "runs.md").read_text(encoding="utf-8")
    assert "unfinished" in whole.text


def test_what_all_runs_share_is_said_once(several: Path) -> None:
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', Page(several / "report.html").source)
    assert "learner" in heads
    assert not {"data", "scenario", "scale"} & set(heads)


def test_many_runs_leave_pictures_out_and_say_where_they_are(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_RUNS_WITH_IMAGES", 1)
    for name in ("a", "b"):
        make_run(tmp_path / name, n=1)
    whole = Page(write_report(tmp_path))
    assert not list(whole.all("img"))
    links = [link["href"] for link in whole.all("a")]
    assert "a/report.html" in links
    assert list(Page(tmp_path / "a" / "report.html").all("img"))


def test_a_report_is_the_same_every_time(make_run: MakeRun, tmp_path: Path) -> None:
    path = write_report(make_run(tmp_path).path)
    first = path.read_bytes()
    assert write_report(tmp_path).read_bytes() == first


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no run"):
        write_report(tmp_path)


@pytest.mark.parametrize("module", ["jinja2", "PIL"])
def test_a_missing_extra_is_named(
    module: str, digits_run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadConfig, match=r"pip install 'cilf\[report\]'"):
        write_report(digits_run.path)


def test_na_is_never_shown_without_what_it_is_made_of(one: Page, several: Path) -> None:
    tiles = re.findall(r"<dt[^>]*>(\w+)", one.source.split('<dl class="tiles">')[1])
    assert tiles[:4] == ["H", "AKS", "AUS", "NA"]
    facts = re.search(r'class="run-facts">(.*?)</span>', Page(several / "report.html").source)
    assert facts is not None
    assert re.search(r"H \S+ · AKS \S+ · AUS \S+ · NA ", facts[1])


def test_the_command_quotes_what_a_shell_would_split() -> None:
    assert "--data 'my data'" in page.format_command({"learner": "cilf", "data": "my data"})


def test_a_run_without_detections_shows_what_it_was_given(tmp_path: Path) -> None:
    config = RunConfig.of(
        learner="iforest", data="digits", scenario="multiple", protocol="given",
        stream={"n_windows": 2},
    )  # fmt: skip
    list(run_cell(config, tmp_path))
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "The learner was given the labelled instances of these classes." in page
    assert "labels of 2 novel classes given" in page
    assert "Number of novel classes" not in page
    assert "--protocol given" in page
    head = (tmp_path / "windows.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "AUROC" not in head
