"""A small table that prints as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cilf.core.files import replace_file

Cell = str | int | float | None
MISSING = "\N{EN DASH}"

_LATEX = (
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        MISSING: "--",
        "±": r"$\pm$",
        "\N{DAGGER}": r"$^\dagger$",
    }
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {sign: f"${sign}$" for sign in "<>|"}
)


@dataclass(frozen=True)
class Table:
    """Rows under column heads; ``bold`` names cells as (row, column).

    >>> table = Table("Scores", ("method", "NA"), (("cilf", 0.91251), ("joint", float("nan"))))
    >>> print(table.to_markdown())
    **Scores**
    <BLANKLINE>
    | method | NA |
    | :--- | ---: |
    | cilf | 0.913 |
    | joint | – |
    <BLANKLINE>
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()

    def to_markdown(self) -> str:
        body = [self._marked(row, "**{}**", _escape_markdown) for row in range(len(self.rows))]
        rules = ["---:" if numeric else ":---" for numeric in self.numeric]
        lines = [[_escape_markdown(name) for name in self.columns], rules, *body]
        head = f"**{_escape_markdown(self.title)}**\n\n"
        return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    @classmethod
    def from_markdown(cls, text: str) -> Table:
        """What ``to_markdown`` wrote, with every cell as text.

        >>> table = Table("a_b", ("x", "y"), (("c|d", "1"),), frozenset({(0, 1)}))
        >>> Table.from_markdown(table.to_markdown()) == table
        True
        """
        title, *lines = [line for line in text.splitlines() if line.strip()]
        body = [_cells(line) for line in lines if line.startswith("|")]
        bold = {
            (row, column)
            for row, cells in enumerate(body[2:])
            for column, cell in enumerate(cells)
            if cell.startswith("**")
        }
        rows = tuple(tuple(_unescape_markdown(cell) for cell in cells) for cells in body[2:])
        columns = tuple(_unescape_markdown(cell) for cell in body[0])
        return cls(_unescape_markdown(title), columns, rows, frozenset(bold))

    def to_csv(self) -> str:
        """Numbers in full; a missing one is an empty field, which every reader of CSV knows."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if is_missing(cell) else cell for cell in row] for row in self.rows])
        return text.getvalue()

    def to_latex(self) -> str:
        """A table with the rules of the booktabs package."""
        body = [self._marked(row, r"\textbf{{{}}}", _escape_latex) for row in range(len(self.rows))]
        head = [_escape_latex(name) for name in self.columns]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_escape_latex(self.title)}}}",
                rf"\begin{{tabular}}{{{''.join('r' if n else 'l' for n in self.numeric)}}}",
                r"\toprule",
                _latex_line(head),
                r"\midrule",
                *(_latex_line(line) for line in body),
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def write(self, folder: Path, name: str) -> None:
        """Write ``name.md``, ``name.csv`` and ``name.tex`` into the folder."""
        texts = {"md": self.to_markdown(), "csv": self.to_csv(), "tex": self.to_latex()}
        for suffix, text in texts.items():
            replace_file(folder / f"{name}.{suffix}", text.encode())

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds no text, and so is aligned to the right."""
        return tuple(
            all(not isinstance(row[column], str) for row in self.rows)
            for column in range(len(self.columns))
        )

    def _marked(self, row: int, bold: str, escape: Callable[[str], str]) -> list[str]:
        texts = [escape(show(cell)) for cell in self.rows[row]]
        return [bold.format(t) if (row, c) in self.bold else t for c, t in enumerate(texts)]


def show(cell: Cell, digits: int = 3) -> str:
    """A cell as people read it.

    >>> show(0.5), show(12), show(float("nan")), show("a")
    ('0.500', '12', '–', 'a')
    """
    if is_missing(cell):
        return MISSING
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def is_missing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _escape_markdown(text: str) -> str:
    for sign in "\\|*_`<":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())


def _unescape_markdown(text: str) -> str:
    text = text[2:-2] if text.startswith("**") else text
    return re.sub(r"\\(.)", r"\1", text)


def _cells(line: str) -> list[str]:
    """Of one line of a table; a bar after a backslash is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
