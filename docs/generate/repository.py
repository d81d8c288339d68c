"""Files of the repository outside docs/ that pages link to: the site holds a copy of each.

A Markdown file becomes a page. A script or a grid becomes a page with its text, a folder one with
the list of its files. Any other file is copied. All are below ``repository/`` on the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
FOLDER = "repository"
SHOWN = {".py": "python", ".toml": "toml"}  # how the text of these files is highlighted
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"  # of a page that nobody looks for
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
SECTIONS = {"results.md": "Results", "methods/index.md": "Learners"}  # of README.md, with a page


def linked_files(pages: Mapping[str, str]) -> dict[str, str | bytes]:
    """The copies that these pages need, and those that the copies need, by their place."""
    copies: dict[str, str | bytes] = {}
    waiting = dict(pages)
    while waiting:
        place, text = waiting.popitem()
        for path in _outside(text, place):
            name = _place(path)
            if name in copies:
                continue
            copies[name] = content = _copy(path)
            if name.endswith(".md"):
                waiting[name] = str(content)
    return copies


def relink(markdown: str, place: str) -> str:
    """The text of the page at this place, with links that lead to the copies."""
    source = _source(place)

    def replace(link: re.Match[str]) -> str:
        target, anchor = link.group(1), link.group(2) or ""
        path = _resolve(target, source)
        if not path.exists():
            return link.group()
        to = _place(path)
        return PurePosixPath(os.path.relpath(to, PurePosixPath(place).parent)).as_posix() + anchor

    return LINK.sub(replace, markdown)


def readme_pages() -> dict[str, str]:
    """Sections of README.md that are pages of the site, by their place."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    )
    return {place: f"# {title}\n{sections[title]}" for place, title in SECTIONS.items()}


def _outside(text: str, place: str) -> list[Path]:
    """The paths in the repository, outside docs/, that the page at a place links to."""
    source = _source(place)
    found = [_resolve(link.group(1), source) for link in LINK.finditer(text)]
    docs = ROOT / "docs"
    return [path for path in found if path.exists() and not path.is_relative_to(docs)]


def _source(place: str) -> Path:
    """The file whose folder the links of a page start from."""
    if place in SECTIONS:
        return ROOT / "README.md"
    if not place.startswith(f"{FOLDER}/"):
        return ROOT / "docs" / place
    path = ROOT / place.removeprefix(f"{FOLDER}/")
    if path.name == "index.md" and not path.exists():
        return path.parent / "README.md"
    return path


def _resolve(target: str, source: Path) -> Path:
    return Path(os.path.normpath(source.parent / target))


def _place(path: Path) -> str:
    """Where the site holds a file or folder of the repository."""
    docs = ROOT / "docs"
    if path.is_relative_to(docs):
        place = path.relative_to(docs)
        return (place.with_suffix(".md") if path.suffix == ".ipynb" else place).as_posix()
    name = f"{FOLDER}/{path.relative_to(ROOT).as_posix()}"
    if path.is_dir():
        return f"{name}/index.md"
    if path.name == "README.md":
        return f"{name.removesuffix('README.md')}index.md"
    return f"{name}.md" if path.suffix in SHOWN else name


def _copy(path: Path) -> str | bytes:
    if path.is_dir():
        readme = path / "README.md"
        return readme.read_text(encoding="utf-8") if readme.exists() else _list_folder(path)
    if path.suffix in SHOWN:
        text = path.read_text(encoding="utf-8")
        return f"{UNSEARCHED}# {path.name}\n\n```{SHOWN[path.suffix]}\n{text}```\n"
    return path.read_text(encoding="utf-8") if path.suffix == ".md" else path.read_bytes()


def _list_folder(folder: Path) -> str:
    lines = [f"# {folder.relative_to(ROOT).as_posix()}", ""]
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            lines.append(f"- `{path.name}/`: {sum(1 for _ in path.rglob('*'))} files and folders")
        else:
            lines.append(f"- [{path.name}]({path.name})")
    return "\n".join(lines) + "\n"
