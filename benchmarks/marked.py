"""Texts in pages that a command writes: what stands between two marks is replaced."""

from __future__ import annotations

from pathlib import Path


def replace_marked(page: Path, mark: str, text: str) -> None:
    """Put ``text`` between ``<!-- mark -->`` and ``<!-- /mark -->``, if the page has them."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(start)
    if found:
        after = rest.partition(end)[2]
        page.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")
