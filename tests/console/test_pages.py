"""The pages, as HTML and in a real browser on a real server."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

from cilf.console import updates
from cilf.console.gallery import encode_png
from cilf.console.pages import ACTIONS, MOVES
from cilf.console.service import Console
from cilf.console.store import DONE, Store
from cilf.data import load_dataset
from cilf.workflow.comparison import Score

from .browsing import OVERFLOW, Desk, find_barriers, find_nameless, open_page, take_shot
from .conftest import (
    COWS,
    post,
    put_model,
    put_window,
)
from .servers import Server, serving


def test_pages(client: TestClient) -> None:
    post(client, "name", clusters=[COWS], name="<b>cow</b>")
    for path in ("/", "/windows/1", "/classes", "/stream", "/login"):
        page = client.get(path)
        assert page.status_code == 200, path
        assert "<b>cow" not in page.text
    assert "&lt;b&gt;cow" in client.get("/windows/1").text
    assert client.get("/windows/7").status_code == 404
    assert client.get("/static/../app.py").status_code == 404
    assert "http" not in client.get("/static/console.js").text
    for section in ("clusters", "known", "queries", "history", "update", "members?cluster=1"):
        assert client.get(f"/windows/1/section/{section}").status_code == 200, section


def test_the_table_of_an_update_has_the_bounds_of_each_accuracy(
    client: TestClient, console: Console
) -> None:
    post(client, "name", clusters=[COWS], name="cow")
    job = updates.start_update(console, 1)
    scores = {"held_out": Score(20, 0.9, 1.0), "memory": Score(40, 1.0, 1.0)}
    new = {"held_out": Score(0, math.nan, math.nan), "memory": Score(6, math.nan, 1.0)}
    rows = {"cat": scores, "cow": new}
    classes = [
        {"label": label} | {kind: score.to_json() for kind, score in kinds.items()}
        for label, kinds in rows.items()
    ]
    outcome = {"refused": False, "version": 2, "n_labels": 12, "classes": classes}
    console.store.change_job(job, status=DONE, result=outcome)
    text = " ".join(re.sub(r"<[^>]+>", " ", client.get("/windows/1/section/update").text).split())
    assert "cat 20 90 % 74-97 % 100 % 88-100 % 40 100 % 100 %" in text
    assert "cow 0 - - 6 - 100 %" in text


def test_the_table_of_a_fit_has_the_bounds_of_each_accuracy(
    client: TestClient, console: Console
) -> None:
    fitted = {
        "version": 1,
        "accuracy": 0.95,
        "classes": {"cat": {"n": 20, "accuracy": 0.9}, "dog": {"n": 20, "accuracy": 1.0}},
        "confusion": {"cat": {"cat": 18, "dog": 2}, "dog": {"dog": 20}},
    }
    console.store.change_job(console.store.add_job("fit"), status=DONE, result=fitted)
    text = " ".join(re.sub(r"<[^>]+>", " ", client.get("/").text).split())
    assert "Class Test Accuracy cat dog cat 20 90 % 74-97 % 18 2 dog 20 100 % 88-100 %" in text


def test_the_keys_of_the_page_are_in_the_docs() -> None:
    moves = [
        f"| {' '.join(one if one == '…' else f'`{one}`' for one in key.split())} | {text} |"
        for key, text in MOVES.items()
    ]
    rows = moves + [f"| `{one.key.upper()}` | {one.description} |" for one in ACTIONS.values()]
    table = "\n".join(["| key | description |", "|---|---|", *rows])
    assert table in DOCS.read_text(), f"the table of docs/console.md has to be:\n{table}"


def test_the_classes_page_says_where_versions_came_from(
    client: TestClient, console: Console
) -> None:
    update = {"event": "update", "version": 2, "before": 1, "time": "2026-01-02T00:00:00+00:00"}
    update |= {"n_labels": 1, "data": "monday", "renamed": {"dog": "hound"}, "new_classes": []}
    model = console.model()
    console.store.put_fact("model", {**model, "events": [*model["events"], update]})
    page = client.get("/classes").text
    assert "fit from zoo" in page
    assert "update, 1 label from monday; dog renamed to hound" in page
    assert "since version 1, 30 labels" in page


def test_a_failed_update_is_shown_until_the_labels_change(
    client: TestClient, console: Console
) -> None:
    post(client, "name", clusters=[COWS], name="cow")
    job = console.store.add_job("update", 1, labels="labels-1.json")
    console.store.change_job(job, status="failed", problem="the disk is full")
    assert "the disk is full" in client.get("/windows/1/section/update").text
    post(client, "undo")
    assert "the disk is full" not in client.get("/windows/1/section/update").text


def test_a_window_can_have_more_clusters_than_were_found(client: TestClient) -> None:
    post(client, "label", rows=[0], name="cat")
    post(client, "split", cluster=COWS, rows=[30])
    page = client.get("/section/windows").text
    assert "<td>1 of 4</td>" in page


DOCS = Path(__file__).parents[2] / "docs" / "console.md"
NEW = {"5": "five", "6": "six"}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """known/0 to known/4, and windows: monday with 5 to 7 too, tuesday with 5, 6, friday with 5."""
    folder = tmp_path_factory.mktemp("digits")
    X, y = load_dataset("digits").train
    pictures = (X.astype(np.float64) / X.max() * 255).astype(np.uint8)
    mixed = np.random.default_rng(0).permutation(len(y))  # they come writer by writer
    rows = {digit: mixed[y[mixed] == digit] for digit in range(8)}

    def write(target: Path, digit: int, start: int, n: int) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for row in rows[digit][start : start + n]:
            (target / f"{digit}-{row}.png").write_bytes(encode_png(pictures[row]))

    for digit in range(8):
        if digit < 5:
            write(folder / "known" / str(digit), digit, 0, 60)
        write(folder / "monday", digit, 60, 25)
        if digit < 7:
            write(folder / "tuesday", digit, 85, 25)
        if digit < 6:
            write(folder / "friday", digit, 60, 25)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, digits: Path) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("store"), "--data", str(digits)) as running:
        yield running


def test_from_digits_to_an_updated_model(browser: Any, digits: Path, server: Server) -> None:
    page = open_page(browser, server.url)
    page.fill("#person", "Ann")
    take_shot(page, "01-no-model")
    assert find_barriers(page) == []
    page.click("form[data-post='/api/model/fit'] summary")
    page.wait_for_selector("select[name=learner] option:text-is('iforest')", state="attached")
    page.fill("form[data-post='/api/model/fit'] input[name=seed]", "1")
    page.click("[data-browse=data]")
    take_shot(page, "01-browse")
    page.click("#browse button[aria-label='Use known']")
    page.click("button:has-text('Fit a model')")
    page.wait_for_selector("#jobs:has-text('fit:')")
    page.wait_for_selector("text=Version 1 is fitted")
    page.wait_for_load_state("load")
    assert page.locator(".confusion tbody tr").count() == 5
    assert "add a window" in page.inner_text(".next")
    assert find_barriers(page) == []
    take_shot(page, "02-fitted")

    # Monday's window: what is new in it?
    page.fill("form[data-post='/api/windows'] input[name=path]", str(digits / "monday"))
    page.click("button:text-is('Detect')")
    page.wait_for_url("**/windows/1")  # the page opens by itself
    page.wait_for_load_state("networkidle")
    desk = Desk(page)
    assert "200 instances" in page.inner_text(".chips")
    take_shot(page, "03-window")
    assert find_nameless(page) == []

    while len(desk.clusters()) < 4:  # so that there is something to merge and to reject
        first = next(iter(desk.clusters()))
        desk.focus(first)
        desk.press("s")
    shown_digits = desk.digits()

    # Name one that comes again on Tuesday.
    named, digit = next((cluster, digit) for cluster, digit in shown_digits.items() if digit in NEW)
    label = NEW[digit]
    desk.focus(named)
    desk.name(label)
    assert desk.titles()[named] == label
    # Merge two, and name them.
    one, two = [cluster for cluster in desk.titles() if cluster != named][:2]
    for cluster in (one, two):
        desk.focus(cluster)
        page.keyboard.press("Space")
    take_shot(page, "04-two-chosen")
    desk.press("m")
    assert two not in desk.titles()
    desk.press("u")  # changed my mind
    assert two in desk.titles()
    for cluster in (one, two):
        desk.focus(cluster)
        page.keyboard.press("Space")
    desk.press("m")
    desk.focus(one)
    desk.name("other")
    # Reject one.
    three = next(cluster for cluster in desk.titles() if cluster not in (named, one))
    desk.focus(three)
    desk.press("r")
    assert "not novel" in desk.titles()[three]
    take_shot(page, "05-named")

    # Update.
    page.keyboard.press("l")
    page.wait_for_selector("#update table")
    if page.query_selector("button:has-text('Update anyway')"):  # old classes would lose too much
        page.click("button:has-text('Update anyway')")
    page.wait_for_selector("button:has-text('Accept version')")
    take_shot(page, "06-updated")
    assert label in page.inner_text("#update table")
    assert label in page.inner_text("#update-title")
    page.click("button:has-text('Accept version')")
    page.wait_for_selector("text=Accepted.")

    # Tuesday's window: the new class is known now.
    page.goto(server.url)
    page.fill("form[data-post='/api/windows'] input[name=path]", str(digits / "tuesday"))
    page.click("button:text-is('Detect')")
    page.wait_for_url("**/windows/2")
    page.click(f"details[data-label='{label}'] summary")
    page.wait_for_selector(f"details[data-label='{label}'] .thumb")
    thumbs = page.query_selector_all(f"details[data-label='{label}'] .thumb")
    shown = [thumb.get_attribute("aria-label") for thumb in thumbs]
    right = sum(one.startswith(f"Instance {digit}-") for one in shown)
    assert right >= 10, shown
    take_shot(page, "07-second-window")
    page.goto(server.url + "/stream")
    assert f"came: {label}" in page.inner_text(".windows")
    take_shot(page, "08-stream")
    page.goto(server.url + "/classes")
    card = f".class:has(h2:text-is('{label}'))"
    assert "since version 2" in page.inner_text(card)
    take_shot(page, "09-classes")
    assert page.complaints == []

    # And back: the model as it was, and a name that is a better one.
    page.fill(f"{card} input", f"the {label}")
    page.press(f"{card} input", "Enter")
    page.wait_for_selector(f"h2:text-is('the {label}')")
    page.wait_for_load_state("load")  # keys are heard from then on
    page.keyboard.press("u")
    page.wait_for_selector(f"h2:text-is('{label}')")
    page.wait_for_load_state("load")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click("button[aria-label='Roll back to version 1']")
    assert httpx.get(server.url + "/api/jobs?active=true").json() == []
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("button[aria-label='Roll back to version 1']")
    page.wait_for_selector("text=not in the model yet")
    told = httpx.get(server.url + "/api/model").json()
    assert told["version"] == 1
    page.context.close()
    learn_a_class_in_five_clicks(browser, server)


COUNT_CLICKS = """addEventListener("click", (event) => {
  if (event.detail) sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1;
}, true);"""


def learn_a_class_in_five_clicks(browser: Any, server: Server) -> None:
    """From a folder to a learned class: five clicks and one typed name."""
    page = open_page(browser, server.url)
    page.context.add_init_script(COUNT_CLICKS)
    page.reload()
    page.click("[data-browse=path]")
    page.click("#browse button[aria-label='Use friday']")
    page.click("button:text-is('Detect')")
    page.wait_for_url("**/windows/3")
    page.wait_for_selector("[data-name-cluster] input:focus")
    desk = Desk(page)
    version = desk.version()
    page.keyboard.type("five")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    assert "update the model" in page.inner_text("#next")
    page.click("[data-action=update]")
    page.click("button:has-text('Accept version')")
    page.wait_for_selector("text=Accepted.")
    page.wait_for_selector("#next:has-text('the model knows these names')")
    assert page.evaluate("Number(sessionStorage.clicks)") <= 5
    assert "five" in httpx.get(server.url + "/api/model").json()["classes"]
    assert page.complaints == []
    page.context.close()


def test_the_sample_project_starts_with_one_click(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        page = open_page(browser, running.url)
        dropped = page.evaluate_handle(
            """() => { const data = new DataTransfer();
            data.items.add(new File(["x"], "zoo.zip")); return data; }"""
        )
        page.dispatch_event("form[data-drop]", "drop", {"dataTransfer": dropped})
        name = page.locator("form[data-drop] input[type=file]").evaluate("one => one.files[0].name")
        assert name == "zoo.zip"
        page.click("[data-sample]")
        page.wait_for_selector("#jobs:has-text('fit:')")
        assert [job["kind"] for job in httpx.get(running.url + "/api/jobs").json()] == [
            "fit",
            "detect",
        ]
        page.wait_for_selector(".next:has-text('wait until the model is fitted')")
        page.context.close()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a window that was looked at."""
    folder = tmp_path_factory.mktemp("ready")
    store = Store(folder)
    put_model(store)
    put_window(Console(store, folder / "model"))
    store.close()
    with serving(folder) as running:
        yield running


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("path", ["/", "/windows/1", "/classes", "/stream", "/login"])
def test_pages_fit_and_are_named(
    browser: Any, ready: Server, path: str, width: int, scheme: str
) -> None:
    page = open_page(browser, ready.url + path, width, scheme)
    page.wait_for_load_state("networkidle")
    assert page.evaluate(OVERFLOW) <= 0
    assert find_nameless(page) == []
    assert find_barriers(page) == []
    assert page.complaints == []
    take_shot(page, f"page{path.replace('/', '-')}-{width}-{scheme}")
    page.context.close()


def test_windows_are_renamed_archived_and_deleted(browser: Any, ready: Server) -> None:
    store = Store(ready.store)
    number = put_window(Console(store, ready.store / "model"), "second")
    store.close()
    page = open_page(browser, ready.url + "/")
    page.once("dialog", lambda dialog: dialog.accept("Tuesday"))
    page.click(f"button[aria-label='Rename window {number}']")
    page.wait_for_selector(f"text={number}. Tuesday")
    page.wait_for_load_state()  # with its scripts
    page.click(f"button[aria-label='Archive window {number}']")
    page.click("summary:text-is('1 archived window')")
    take_shot(page, "11-archived")
    page.click(f"button[aria-label='Take window {number} out of the archive']")
    page.wait_for_selector("summary", state="detached")
    page.wait_for_load_state()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click(f"button[aria-label='Delete window {number}']")
    assert page.is_visible(f"text={number}. Tuesday")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click(f"button[aria-label='Delete window {number}']")
    page.wait_for_selector(f"text={number}. Tuesday", state="detached")
    assert httpx.get(f"{ready.url}/windows/{number}").status_code == 404
    page.context.close()


def test_lasso_chooses_and_moves(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    page.wait_for_load_state("networkidle")
    desk, box = Desk(page), page.locator("#map").bounding_box()
    assert box is not None

    def at(x: float, y: float) -> tuple[float, float]:
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    # The hens are at the right, at the top.
    corners = [at(0.6, 0.02), at(0.98, 0.02), at(0.98, 0.4), at(0.6, 0.4), at(0.6, 0.05)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    assert "8 instances chosen" in page.inner_text("#chosen")
    take_shot(page, "10-lasso")
    page.keyboard.press("v")
    version = desk.version()
    page.select_option("#dialog-target select", "1")
    page.click("#dialog button.primary")
    desk.wait_for_change(version)
    assert list(desk.titles()) == [1]
    desk.press("u")
    assert set(desk.titles()) == {1, 2}
    page.context.close()


def test_pointing_at_the_map_shows_an_instance(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    page.wait_for_load_state("networkidle")
    points = httpx.get(ready.url + "/api/windows/1/map").json()
    box = page.locator("#map").bounding_box()
    assert box is not None
    scale, margin = (box["width"] - 32) / 1000, 16
    x, y = margin + points["x"][30] * scale, margin + (1000 - points["y"][30]) * scale
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert "cluster 1, nearest to dog" in page.inner_text("#hover")
    page.wait_for_selector("#hover img")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#hover", state="hidden")
    page.context.close()


def test_chosen_instances_go_into_a_known_class_and_clusters_stay(
    browser: Any, ready: Server
) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    page.wait_for_load_state("networkidle")
    desk = Desk(page)
    page.click(".cluster-card[data-cluster='1'] .exemplar.medoid .thumb")
    page.keyboard.press("r")  # is about clusters, and none was chosen
    page.wait_for_selector("#toast.problem:has-text('reject needs clusters')")
    version = desk.version()
    page.keyboard.press("i")
    page.select_option("#dialog-known select", "cat")
    page.click("#dialog button.primary")
    desk.wait_for_change(version)
    assert desk.titles() == {1: "no name yet", 2: "no name yet", max(desk.titles()): "cat"}
    desk.press("u")
    assert set(desk.titles().values()) == {"no name yet"}
    page.context.close()


def test_what_is_known_is_counted_anew(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    desk = Desk(page)
    cats = "#known [data-label='cat']"
    page.click(f"{cats} summary")
    page.click(f"{cats} .thumb >> nth=0")
    version = desk.version()
    page.keyboard.press("n")
    page.keyboard.type("lynx")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    assert page.inner_text(f"{cats} summary").split() == ["cat", "19"]
    page.wait_for_selector(f"{cats}[open] .thumb")
    desk.press("u")
    assert page.inner_text(f"{cats} summary").split() == ["cat", "20"]
    page.context.close()


def test_somebody_else_was_faster(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    page.route("**/events?after=*", lambda route: route.abort())  # Ann has not seen it yet
    desk = Desk(page)
    body = {"clusters": [1], "name": "cow", "person": "Bob"}
    httpx.post(ready.url + "/api/windows/1/name", json=body).raise_for_status()
    desk.focus(1)
    page.keyboard.press("n")
    page.keyboard.type("calf")
    page.keyboard.press("Enter")
    page.wait_for_selector("#toast.problem:has-text('Bob')")
    page.wait_for_selector(".cluster-card[data-cluster='1'] .title:text-is('cow')")
    desk.wait()
    desk.press("u")
    assert desk.titles()[1] == "no name yet"
    page.context.close()


def test_what_others_do_comes_in_by_itself(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    body = {"clusters": [2], "name": "hen", "person": "Bob"}
    httpx.post(ready.url + "/api/windows/1/name", json=body).raise_for_status()
    looks = {"page": "page-of-bob", "person": "Bob", "cluster": 2}
    httpx.post(ready.url + "/api/windows/1/presence", json=looks).raise_for_status()
    page.wait_for_selector(".cluster-card[data-cluster='2'] .title:text-is('hen')")
    page.wait_for_selector("#present:has-text('Bob looks at cluster 2')")
    page.wait_for_selector(".cluster-card[data-cluster='2'] .viewers:has-text('Bob')")
    desk = Desk(page)
    desk.wait()
    desk.press("u")
    page.context.close()


def test_queries_are_answered_by_key(browser: Any, ready: Server) -> None:
    page = open_page(browser, ready.url + "/windows/1")
    desk = Desk(page)
    page.wait_for_load_state("networkidle")
    version = desk.version()
    page.keyboard.press("q")
    page.keyboard.type("heron")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    assert "heron" in desk.titles().values()
    assert page.inner_text("#queries").startswith("1 of")
    desk.press("u")
    page.context.close()


def test_a_token_is_typed_once(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "long-enough") as running:
        page = open_page(browser, running.url + "/classes")
        page.fill("input[name=token]", "wrong-one")
        page.click("text=Enter")
        page.wait_for_selector("text=The token is wrong.")
        page.fill("input[name=token]", "long-enough")
        page.click("text=Enter")
        page.wait_for_selector("text=Fit a model first")
        page.goto(running.url + "/classes")
        assert "No class yet" in page.inner_text("main")
        page.context.close()


def test_files_are_uploaded(browser: Any, ready: Server, digits: Path) -> None:
    page = open_page(browser, ready.url)
    files = sorted((digits / "monday").iterdir())[:3]
    page.set_input_files("input[name=files]", files)
    page.click("text=Upload and detect")
    page.wait_for_selector("#windows :text('3 files')")
    bad = digits / "evil.png"
    bad.write_bytes(b"#!/bin/sh")
    page.set_input_files("input[name=files]", [bad])
    page.click("text=Upload and detect")
    page.wait_for_selector("#toast.problem:has-text('not a readable image')")
    page.context.close()
