"""What the site is made of, checked without building it: ``make docs`` builds it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
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


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import a module that makes the site; none of those here needs the extra docs."""
    monkeypatch.syspath_prepend(str(DOCS / "generate"))
    return importlib.import_module


def test_a_broken_link_or_anchor_is_found(generate: Callable[[str], Any], tmp_path: Path) -> None:
    links = ("b.html", "b.html#here", "#top", "https://example.org/a", "mailto:a@example.org")
    broken = ("c.html", "b.html#gone", "#gone", "https:///a")
    loaded = '<img src="https://example.org/a.png"><script src="a.js"></script>'
    anchors = "".join(f'<a href="{link}">x</a>' for link in (*links, *broken))
    (tmp_path / "a.html").write_text(f'<h1 id="top">A</h1>{anchors}{loaded}')
    (tmp_path / "b.html").write_text('<h2 id="here">B</h2>')
    n_links, found = generate("check_links").find_broken(tmp_path)
    assert n_links == 11
    assert [line.split(": ")[1] for line in found] == [
        *broken, "https://example.org/a.png", "a.js"
    ]  # fmt: skip


def test_links_out_of_the_documentation_lead_to_copies(generate: Callable[[str], Any]) -> None:
    repository = generate("repository")
    page = "[a](../CONTRIBUTING.md#style) [b](tutorials/stream.ipynb) [c](https://example.org)"
    assert repository.relink(page, "scale.md") == (
        "[a](repository/CONTRIBUTING.md#style) [b](tutorials/stream.md) [c](https://example.org)"
    )
    assert "repository/CONTRIBUTING.md" in repository.linked_files({"scale.md": page})


def test_lists_anchors_and_doctests_are_those_of_github(generate: Callable[[str], Any]) -> None:
    github = generate("github_markdown")
    assert github.slugify("How many, *really*?", "-") == "how-many-really"
    assert github.convert("1. One\n\n   | a |\n\nEnd\n") == "1. One\n\n    | a |\n\nEnd\n"
    assert github.convert("```python\n>>> 1\n1\n\n```\n") == "```pycon\n>>> 1\n1\n```\n"


def test_references_are_made_from_the_code(generate: Callable[[str], Any]) -> None:
    commands = generate("cli_reference").write_page()
    assert "## cilf watch" in commands
    assert "| `--strategy` `<str>` |" in commands
    assert "{strategies}" not in commands
    learners = generate("api_reference").write_module("cilf.learners")
    assert "device: str = 'auto'" in learners
    assert "| `memory_size` | int, default=2000 |" in learners
    assert "### POST /api/windows\n" in generate("rest_reference").write_console_page()
