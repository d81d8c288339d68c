"""A table that is written as Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from cilf.core.documents import Count, Damage, Document, Text, parse_document
from cilf.core.files import replace_file

Cell = str | int | float | None
MISSING = "\N{EN DASH}"
GAP_SIGNS = ("ᵃ", "ᵇ", "ᶜ", "ᵈ", "ᵉ", "ᶠ")  # beside empty cells; a note explains them

_LATEX = (
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        MISSING: "--",
        "±": r"$\pm$",
        "\N{DAGGER}": r"$^\dagger$",
        "\N{DOUBLE DAGGER}": r"$^\ddagger$",
    }
    | {sign: f"$^{letter}$" for sign, letter in zip(GAP_SIGNS, "abcdef", strict=True)}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {sign: f"${sign}$" for sign in "<>|"}
)


class TableDocument(Document):
    """The schema of a table."""

    title: Text
    columns: list[Text]
    rows: list[list[Text | bool | int | Annotated[float, Field(allow_inf_nan=False)] | None]]
    bold: list[Annotated[tuple[Count, Count], Strict(False)]]  # lists, in JSON
    note: Text


@dataclass(frozen=True)
class Table:
    """Rows under column heads.

    ``bold`` names cells as (row, column); ``note`` is printed below the rows.

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
    note: str = ""

    def to_markdown(self) -> str:
        """Return the table as Markdown, with its title and its note."""
        body = [self._format_row(row, "**{}**", _escape_markdown) for row in range(len(self.rows))]
        rules = ["---:" if numeric else ":---" for numeric in self.numeric]
        lines = [[_escape_markdown(name) for name in self.columns], rules, *body]
        head = f"**{_escape_markdown(self.title)}**\n\n"
        note = f"\n{self.note}\n" if self.note else ""
        return head + "".join(f"| {' | '.join(line)} |\n" for line in lines) + note

    def to_json(self) -> str:
        """Return the table as JSON; a missing number is null.

        >>> table = Table("Scores", ("method", "NA"), (("cilf", 0.91251),), frozenset({(0, 1)}))
        >>> Table.from_json(table.to_json()) == table
        True
        """
        rows = [[None if is_missing(cell) else cell for cell in row] for row in self.rows]
        return json.dumps(vars(self) | {"rows": rows, "bold": sorted(self.bold)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Table:
        """Read what ``to_json`` returned."""
        return cls.parse(text.encode(), "the table")

    @classmethod
    def parse(cls, encoded: bytes, name: str) -> Table:
        """The same from bytes; ``name`` is that of their file in messages."""
        content = parse_document(encoded, name, TableDocument)
        n_columns = len(content["columns"])
        if any(len(row) != n_columns for row in content["rows"]):
            raise Damage(f"{name} has a row of another length")
        rows = tuple(tuple(row) for row in content["rows"])
        bold = frozenset((row, column) for row, column in content["bold"])
        return cls(content["title"], tuple(content["columns"]), rows, bold, content["note"])

    def to_csv(self) -> str:
        """Return the table as CSV: numbers in full, an empty field for a missing one."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if is_missing(cell) else cell for cell in row] for row in self.rows])
        return text.getvalue()

    def to_latex(self) -> str:
        """Return the table as LaTeX for the package booktabs."""
        body = [
            self._format_row(row, r"\textbf{{{}}}", _escape_latex) for row in range(len(self.rows))
        ]
        head = [_escape_latex(name) for name in self.columns]
        caption = f"{self.title}. {self.note}" if self.note else self.title
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_escape_latex(caption)}}}",
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
        """Whether each column holds no text and is aligned to the right."""
        return tuple(
            all(not isinstance(row[column], str) for row in self.rows)
            for column in range(len(self.columns))
        )

    def _format_row(self, row: int, bold: str, escape: Callable[[str], str]) -> list[str]:
        texts = [escape(format_cell(cell)) for cell in self.rows[row]]
        return [bold.format(t) if (row, c) in self.bold else t for c, t in enumerate(texts)]


def format_cell(cell: Cell, digits: int = 3) -> str:
    """Format a cell for people.

    >>> format_cell(0.5), format_cell(12), format_cell(float("nan")), format_cell("a")
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


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
