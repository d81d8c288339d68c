"""Pages in a real browser, and what people do on them."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
CONTROLS = {"button", "link", "textbox", "checkbox", "combobox", "spinbutton", "progressindicator"}
SLOW = 300_000  # milliseconds, for a machine with much else to do
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")


def open_page(browser: Any, url: str, width: int = 1280, scheme: str = "light") -> Any:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
    )
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.complaints = []
    page.on("console", lambda m: page.complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(url)
    return page


def take_shot(page: Any, name: str) -> None:
    """Kept where somebody can look at it, if a place is named."""
    if folder := os.environ.get("CILF_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def find_nameless(page: Any) -> list[str]:
    """Controls that a screen reader could not tell apart."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [
        str(node)
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in CONTROLS
        and not node.get("name", {}).get("value", "").strip()
    ]


def find_barriers(page: Any) -> list[str]:
    """The serious and critical findings of axe-core, with the elements that they are about."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


class Desk:
    """A window's page, as one uses it."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def clusters(self) -> dict[int, list[str]]:
        """Cluster -> the digits on its sheet."""
        found = {}
        for card in self.page.query_selector_all("#clusters .cluster-card"):
            labels = [t.get_attribute("aria-label") for t in card.query_selector_all(".thumb")]
            found[int(card.get_attribute("data-cluster"))] = [
                re.search(r"Instance (\d)-", label).group(1) for label in labels
            ]
        return found

    def digits(self) -> dict[int, str]:
        """Cluster -> the digit that most of its sheet shows."""
        return {
            cluster: Counter(shown).most_common(1)[0][0]
            for cluster, shown in self.clusters().items()
        }

    def focus(self, cluster: int) -> None:
        self.page.focus(f"#clusters .cluster-card[data-cluster='{cluster}']")

    def press(self, key: str) -> None:
        """Press the key of a verb and wait until the page shows what came of it."""
        version = self.version()
        self.page.keyboard.press(key)
        self.wait_for_change(version)

    def name(self, label: str) -> None:
        version = self.version()
        self.page.keyboard.press("n")
        self.page.keyboard.type(label)
        self.page.keyboard.press("Enter")
        self.wait_for_change(version)

    def version(self) -> int:
        return int(self.page.get_attribute("#clusters .clusters", "data-version"))

    def wait_for_change(self, since: int) -> None:
        end = time.monotonic() + SLOW / 1000
        while self.version() <= since:
            assert time.monotonic() < end, self.page.inner_text("#toast")
            self.page.wait_for_timeout(50)
        self.wait()

    def wait(self) -> None:
        """Wait until all parts of the page have come, and the focus is back."""
        self.page.wait_for_selector(".desk[aria-busy='false']")

    def titles(self) -> dict[int, str]:
        cards = self.page.query_selector_all("#clusters .cluster-card")
        return {
            int(card.get_attribute("data-cluster")): card.query_selector(".title").inner_text()
            for card in cards
        }
