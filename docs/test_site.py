"""What the site is made of, checked without building it: ``make docs`` builds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from cilf.learners import LEARNERS

DOCS = Path(__file__).parent
CONFIG = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_of(entry: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for part in entry.values():
            yield from pages_of(part)
    else:
        for part in entry:
            yield from pages_of(part)


def test_the_navigation_names_every_page() -> None:
    named = list(pages_of(CONFIG["nav"]))
    written = [
        path.relative_to(DOCS) for suffix in ("md", "ipynb") for path in DOCS.rglob(f"*.{suffix}")
    ]
    missing = {path.with_suffix(".md").as_posix() for path in written} - set(named)
    assert not missing
    assert len(named) == len(set(named))


def test_every_learner_has_a_page_in_the_navigation() -> None:
    named = set(pages_of(CONFIG["nav"]))
    assert {f"methods/{name}.md" for name in LEARNERS} <= named


def test_the_site_loads_nothing_from_outside() -> None:
    assert CONFIG["theme"]["font"] is False
    assert CONFIG["extra"]["polyfills"] == ["assets/iframe-worker.js"]
    assert (DOCS / "assets" / "iframe-worker.js").exists()


def test_tutorials_are_stored_without_outputs() -> None:
    for path in DOCS.glob("tutorials/*.ipynb"):
        cells = yaml.safe_load(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path
