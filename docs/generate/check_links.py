"""Check every link of the built site: ``python check_links.py site``.

A link inside the site has to lead to a file, and to an anchor that the page has. A link that leads
outside is checked by its form alone. Nothing is loaded from outside: no script, style or picture.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "src",
    "video": "src",
}
LOADED = ("img", "script", "source", "video")
NAMED_ONLY = ("canonical", "license")  # relations of <link> that name an address and load nothing
OUTSIDE = ("http", "https", "mailto")


class Page(HTMLParser):
    """The anchors of a page and the links on it, each with its tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        target = values.get(LINKS.get(tag, ""))
        if target is not None and values.get("rel") not in NAMED_ONLY:
            self.links.append((tag, target))


def find_broken(site: Path) -> tuple[int, list[str]]:
    """The number of links, and a line for each broken one."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken, n_links = [], 0
    for path, page in sorted(pages.items()):
        for tag, target in page.links:
            n_links += 1
            if why := _explain(site, path, tag, target, pages):
                broken.append(f"{path.relative_to(site)}: {target}: {why}")
    return n_links, broken


def _explain(site: Path, path: Path, tag: str, target: str, pages: dict[Path, Page]) -> str:
    """Why a link is broken. Empty if it is not."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return _explain_outside(tag, target)
    base = site if parts.path.startswith("/") else path.parent
    to = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if to.is_dir():
        to /= "index.html"
    if not to.is_file():
        return "there is no such file"
    if parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
        return "the page has no such anchor"
    return ""


def _explain_outside(tag: str, target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme == "data":
        return ""
    if tag in LOADED or tag == "link":
        return "the site loads it from outside"
    formed = parts.scheme in OUTSIDE and (parts.netloc or parts.scheme == "mailto")
    return "" if formed else "it has no form of an address"


def main(site: Path) -> int:
    n_links, broken = find_broken(site.resolve())
    for line in broken:
        print(line, file=sys.stderr)
    print(f"{site}: {n_links} links, {len(broken)} broken")
    return 1 if broken or not n_links else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
