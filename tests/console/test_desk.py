"""The page of a window in a real browser: large pictures, lists, similar instances, the map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cilf.console.service import Console
from cilf.console.store import Store

from .browsing import OVERFLOW, Desk, find_barriers, find_nameless, open_page, take_shot
from .conftest import COWS, HENS, put_model, put_window
from .servers import Server, serving

MEMBERS = f".cluster-card[data-cluster='{COWS}'] .members"
PRESSED = "button.thumb[aria-pressed=true]"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a window of files, three of which are near-duplicates."""
    folder = tmp_path_factory.mktemp("ready")
    photos = tmp_path_factory.mktemp("photos")
    store = Store(folder)
    put_model(store)
    put_window(Console(store, folder / "model"), source=photos, stack={40: 31, 35: 31})
    store.close()
    with serving(folder) as running:
        yield running


@pytest.fixture
def page(browser: Any, ready: Server) -> Iterator[Any]:
    opened = open_page(browser, ready.url + "/windows/1")
    opened.wait_for_load_state("networkidle")
    yield opened
    assert opened.complaints == []
    opened.context.close()


def count_chosen(page: Any) -> int:
    words = page.inner_text("#chosen").split()
    return int(words[0]) if words and words[-1] == "chosen" else 0


def open_members(page: Any) -> None:
    Desk(page).focus(COWS)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{MEMBERS} .thumb")


def list_identities(page: Any, within: str) -> list[str]:
    thumbs = page.query_selector_all(f"{within} button.thumb")
    return [thumb.get_attribute("aria-label").removeprefix("Instance ") for thumb in thumbs]


def test_pictures_grow_and_stay_large(page: Any) -> None:
    image = f".cluster-card[data-cluster='{COWS}'] .medoid img"
    assert page.locator(image).bounding_box()["width"] == 42
    page.focus("#size")
    page.keyboard.press("End")
    assert page.locator(image).bounding_box()["width"] == 256
    width = "image => image.decode().then(() => image.naturalWidth)"
    assert page.locator(f"{image}.sharp").evaluate(width) == 96
    assert page.evaluate(OVERFLOW) <= 0
    page.reload()
    page.wait_for_load_state("networkidle")
    assert page.locator(image).bounding_box()["width"] == 256
    take_shot(page, "20-large-pictures")


def test_an_instance_in_full_size_by_keys(page: Any) -> None:
    open_members(page)
    page.focus(f"{MEMBERS} .thumb >> nth=0")
    names = list_identities(page, MEMBERS)
    page.keyboard.press("z")
    page.wait_for_selector("#lightbox .stage img")
    page.wait_for_selector("#lightbox-size:has-text('pixels, the original file')")
    assert page.inner_text("#lightbox-title") == names[0].split(",")[0]
    page.wait_for_selector("#lightbox-neighbours button")
    assert page.inner_text("#lightbox-known li >> nth=0") in ("cat", "dog")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(f"#lightbox-title:text-is('{names[1].split(',')[0]}')")
    assert page.inner_text("#lightbox-place") == f"2 of {len(names)}"
    before = page.locator("#lightbox .stage img").bounding_box()["width"]
    page.keyboard.press("+")
    assert page.locator("#lightbox .stage img").bounding_box()["width"] > 1.4 * before
    page.keyboard.press("0")
    assert page.locator("#lightbox .stage img").bounding_box()["width"] == before
    assert find_barriers(page) == []
    take_shot(page, "21-lightbox")
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    assert count_chosen(page) == (3 if "near" in names[1] else 1)
    page.keyboard.press("Escape")


def test_similar_instances_and_near_duplicates(page: Any) -> None:
    open_members(page)
    stacked = f"{MEMBERS} .thumb[data-rows*=' ']"
    assert page.inner_text(f"{stacked} .count")[1:] == "3"
    page.click(stacked)
    assert count_chosen(page) == 3  # labelled once
    page.keyboard.press("f")
    page.wait_for_selector("#similar .thumb")
    assert page.locator("#similar .kept li").count() == 5
    shown = list_identities(page, "#similar")
    assert sum(name.startswith("cow") for name in shown[:5]) == 5
    assert find_barriers(page) == []
    take_shot(page, "22-similar")
    page.click("#similar button:has-text('Close')")
    assert page.is_hidden("#similar")
    desk, version = Desk(page), Desk(page).version()
    page.keyboard.press("n")
    assert page.locator("#dialog-pictures img").count() == 3
    page.keyboard.type("calf")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    card = page.locator(".cluster-card:has(.title:text-is('calf')) .facts")
    assert card.inner_text().startswith("3 instances")
    desk.press("u")


def test_members_are_sorted_filtered_and_chosen_in_ranges(page: Any, ready: Server) -> None:
    page.select_option("#sort", "novelty")
    open_members(page)
    names = list_identities(page, MEMBERS)
    assert names[:2] == ["cow-41.png", "cow-40.png, 3 near-duplicates"]
    page.click(f"{MEMBERS} .thumb >> nth=2")
    page.click(f"{MEMBERS} .thumb >> nth=4", modifiers=["Shift"])
    assert count_chosen(page) == 3
    page.keyboard.press("Shift+ArrowRight")
    assert count_chosen(page) == 4
    assert page.locator("#strip .miniature").count() == 4
    page.keyboard.press("a")
    page.wait_for_selector("#chosen:has-text('12 instances')")
    take_shot(page, "23-chosen")
    page.keyboard.press("Escape")
    assert page.is_hidden("#strip")
    page.click("#all summary")
    page.wait_for_selector("#all .thumb")
    page.select_option("#only", "unnamed")
    page.wait_for_selector("#all button:has-text('Choose all 20')")
    page.select_option("#sort", "typical")
    page.select_option("#only", "everything")
    page.wait_for_selector("#all button:has-text('Choose all 50')")


def test_a_late_answer_to_an_earlier_question_is_not_shown(page: Any, ready: Server) -> None:
    page.click("#all summary")
    page.select_option("#only", "novel")
    page.wait_for_selector("#all button:has-text('Choose all 20')")
    held: list[Any] = []
    page.route("**/section/members?*only=unnamed*", lambda route: held.append(route))
    page.select_option("#only", "unnamed")
    page.select_option("#only", "everything")
    page.wait_for_selector("#all button:has-text('Choose all 50')")
    with page.expect_response("**/section/members?*only=unnamed*"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert page.is_visible("#all button:has-text('Choose all 50')")


def test_digits_assign_to_the_most_likely_classes(page: Any) -> None:
    desk = Desk(page)
    desk.focus(COWS)
    page.wait_for_selector("#likely button")
    first = page.get_attribute("#likely button >> nth=0", "data-likely")
    desk.press("1")
    assert desk.titles()[COWS] == first
    desk.press("u")
    page.click(f".cluster-card[data-cluster='{HENS}'] .medoid .thumb")
    page.wait_for_timeout(400)
    version = desk.version()
    page.click("#likely button >> nth=1")
    desk.wait_for_change(version)
    assert len(desk.titles()) == 3
    desk.press("u")


def test_the_map_zooms_moves_and_keeps_the_lasso(page: Any, ready: Server) -> None:
    places = httpx.get(ready.url + "/api/windows/1/map").json()
    assert sorted(places["novelty"]) == places["novelty"]
    assert page.locator("#legend button").count() == 3
    page.locator("#map").scroll_into_view_if_needed()

    def draw(*points: tuple[float, float]) -> None:
        box = page.locator("#map").bounding_box()
        at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
        page.mouse.move(*at[0])
        page.mouse.down()
        for point in at[1:]:
            page.mouse.move(*point, steps=3)
        page.mouse.up()

    hens = ((0.6, 0.02), (0.98, 0.02), (0.98, 0.4), (0.6, 0.4))
    draw(*hens)
    assert count_chosen(page) == 8
    pixels = "document.querySelector('#map').toDataURL()"
    with_line = page.evaluate(pixels)
    page.keyboard.press("Escape")
    assert page.evaluate(pixels) != with_line
    page.click("#legend button:has-text('2 no name')")  # what is hidden is not chosen
    draw(*hens)
    assert count_chosen(page) == 0
    page.click("#legend button:has-text('2 no name')")
    before = page.evaluate(pixels)
    page.hover("#map")
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(100)
    assert page.evaluate(pixels) != before
    zoomed = page.evaluate(pixels)
    page.click("[data-map=pan]")
    draw((0.5, 0.5), (0.3, 0.3))
    assert page.evaluate(pixels) != zoomed
    assert count_chosen(page) == 0
    page.click("[data-map=fit]")
    assert page.evaluate(pixels) == before
    page.focus("#map")
    page.keyboard.press("+")
    assert page.evaluate(pixels) != before
    for colouring in ("class", "novelty"):
        page.select_option("#colouring", colouring)
        take_shot(page, f"24-map-{colouring}")
    assert "low novelty" in page.inner_text("#legend")
    page.select_option("#colouring", "cluster")


def test_two_fingers_zoom_the_map(page: Any) -> None:
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    pixels = "document.querySelector('#map').toDataURL()"
    before = page.evaluate(pixels)
    touch = page.context.new_cdp_session(page)

    def send(kind: str, apart: float | None) -> None:
        points = (
            []
            if apart is None
            else [
                {"x": middle[0] - apart, "y": middle[1], "id": 0},
                {"x": middle[0] + apart, "y": middle[1], "id": 1},
            ]
        )
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", 30)
    for apart in (50, 80, 110):
        send("touchMove", apart)
    send("touchEnd", None)
    assert page.evaluate(pixels) != before
    assert count_chosen(page) == 0
    page.click("[data-map=fit]")
    assert page.evaluate(pixels) == before


def test_progress_says_the_time_left(page: Any) -> None:
    done = iter([10, *[30] * 200])
    job = {"id": 1, "kind": "detect", "window": 2, "status": "running", "stage": "decode"}

    def answer(route: Any) -> None:
        route.fulfill(json=[job | {"done": next(done), "total": 100}])

    page.route("**/api/jobs?active=true", answer)
    page.wait_for_selector("#jobs:has-text('detect: decode, about')")
    assert " left" in page.inner_text("#jobs")


def test_verbs_in_the_menu_and_enter_in_lists(page: Any) -> None:
    desk = Desk(page)
    assert page.locator(".verbs > button").count() <= 7
    page.click(".menu summary")
    take_shot(page, "25-menu")
    assert find_barriers(page) == []
    page.keyboard.press("Escape")
    page.click(f".cluster-card[data-cluster='{COWS}'] .medoid .thumb")
    version = desk.version()
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    desk.press("u")
    page.keyboard.press("q")  # the query is shown where its name is asked for
    assert page.locator("#dialog-pictures img").count() >= 1
    take_shot(page, "26-query")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")


def test_several_people_label(page: Any) -> None:
    desk = Desk(page)
    desk.focus(COWS)
    version = desk.version()
    page.keyboard.press("p")
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    assert page.inner_text(f".cluster-card[data-cluster='{COWS}'] .assignee") == "for Ann"
    page.click(f".cluster-card[data-cluster='{COWS}'] .medoid .thumb")
    desk.name("cow")
    page.click(".cluster-card:has(.title:text-is('cow')) .thumb")
    desk.press("e")
    page.wait_for_selector("#review .thumb")
    assert "cow" not in page.inner_text("#review")
    page.fill("#person", "Bob")
    page.click("#review .thumb")
    version = desk.version()
    page.click("#review [data-verb=opinion]")
    page.keyboard.type("yak")
    page.keyboard.press("Enter")
    desk.wait_for_change(version)
    assert "0 of 1 second opinion agree" in page.inner_text("#review")
    assert "cow, second opinion: yak" in page.inner_text("#review")
    assert find_barriers(page) == []
    with page.expect_download() as download:
        page.click("footer a:text-is('CSV')")
    log = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert "assigned cluster 1 to Ann" in log
    for _ in range(4):
        desk.press("u")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_in_reach_on_a_phone(browser: Any, ready: Server, scheme: str) -> None:
    page = open_page(browser, ready.url + "/windows/1", 400, scheme)
    page.wait_for_load_state("networkidle")
    for button in page.query_selector_all(".verbs > *"):
        box = button.bounding_box()
        assert box is None or box["x"] + box["width"] <= 400
    page.click(f".cluster-card[data-cluster='{COWS}'] .medoid .thumb")
    page.click(f".cluster-card[data-cluster='{COWS}'] .nearest .thumb >> nth=0")
    page.wait_for_timeout(300)
    assert page.evaluate(OVERFLOW) <= 0
    assert find_nameless(page) == []
    assert find_barriers(page) == []
    take_shot(page, f"27-phone-{scheme}")
    page.click("#strip button:has-text('Enlarge')")
    page.wait_for_selector("#lightbox .stage img")
    page.wait_for_selector("#lightbox-neighbours button")
    assert find_barriers(page) == []
    take_shot(page, f"28-phone-lightbox-{scheme}")
    page.context.close()
