"""What GitHub reads otherwise than the site: indented lists, anchors and doctests."""

from __future__ import annotations

import re

ITEM = re.compile(r"^(\d+\.|[-*]) +")
INDENT = 4  # columns that the content of a list item needs on the site
DOCTEST = re.compile(r"^```python\n(>>> .*?)\n*^```", flags=re.DOTALL | re.MULTILINE)


def convert(markdown: str) -> str:
    """The same page for the site."""
    return _indent_items(DOCTEST.sub(r"```pycon\n\1\n```", markdown))


def slugify(heading: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", separator)


def _indent_items(markdown: str) -> str:
    """Indent what belongs to an item of a list by four columns, as the site needs it."""
    lines, width, fenced = [], 0, False
    for line in markdown.splitlines():
        if item := ITEM.match(line):
            width = 0 if fenced else len(item.group())
        elif line and not line.startswith(" " * width):
            width = 0
        elif width and line:
            line = " " * max(0, INDENT - width) + line
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line)
    return "\n".join(lines) + "\n"
