"""The one way to write a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_write_cell, line)) + " |" for line in lines)


def _write_cell(text: str) -> str:
    return text.strip().replace("\n", " ").replace("|", "\\|")
