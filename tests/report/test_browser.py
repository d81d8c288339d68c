"""The page in a real browser: no request, no complaint, no sideways scrolling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cilf.evaluate.records import RunFolder
from cilf.report import write_report

OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"


MakeRun = Callable[..., RunFolder]


@pytest.fixture(scope="module")
def pages(
    make_run: MakeRun, words: Callable[[Any], Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    make_run(root / "one")
    make_run(root / "words", names=words, n=3)
    make_run(root / "vectors", vectors=True)
    make_run(root / "texts", texts=True)
    single = {name: write_report(root / name) for name in ("one", "words", "vectors", "texts")}
    return single | {"several": write_report(root)}


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["one", "words", "vectors", "texts", "several"])
def test_page_is_quiet_and_fits(
    browser: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    opened = browser.new_page(viewport={"width": width, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(pages[name].as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    outside = [url for url in requests if not url.startswith("data:")]
    assert outside == [pages[name].as_uri()]
    assert complaints == []
    assert opened.evaluate(OVERFLOW) <= 0
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page(browser: Any, pages: dict[str, Path], scheme: str) -> None:
    opened = browser.new_page(color_scheme=scheme)
    opened.goto(pages["one"].as_uri())
    paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    for selector in ("body", ".see", ".eyebrow", "td.good", "td.off", ".words"):
        ink = opened.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
        assert contrast(ink, paper) >= 4.5, (selector, ink, paper)
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_card(browser: Any, pages: dict[str, Path], scheme: str) -> None:
    opened = browser.new_page(color_scheme=scheme)
    opened.goto(pages["texts"].as_uri())
    card = opened.evaluate("getComputedStyle(document.querySelector('.texts li')).backgroundColor")
    for selector in (".excerpt", ".source", ".wrong .verdict", ".missed .verdict"):
        ink = opened.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
        assert contrast(ink, card) >= 4.5, (selector, ink, card)
    opened.close()


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    values = [int(part) / 255 for part in colour.strip("rgba()").split(",")[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
