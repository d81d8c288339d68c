"""CSV files that people open, edit and save in a spreadsheet, or write by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cilf.errors import BadInput

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # tells spreadsheets that a file is UTF-8
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
DELIMITERS = ",;\t|"


class Row(NamedTuple):
    """A line with something in it."""

    line: int  # counted from 1
    cells: dict[str, str]  # column -> text, without blanks around it


@dataclass(frozen=True)
class Sheet:
    """The rows of a file under the names of its columns, which are in lower case."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]


def table_bytes(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file; it is marked as UTF-8 if it has more than ASCII in it.

    What is no Unicode (the name of a file need not be) is written as ``storable`` has it.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    written = text.getvalue()
    return storable(written if written.isascii() else MARK + written).encode()


def storable(text: str) -> str:
    r"""The text with escapes for what no file of text can hold.

    >>> storable("caf\udce9.png")
    'caf\\udce9.png'
    """
    return text.encode(errors="backslashreplace").decode()


def read_sheet(path: Path) -> Sheet:
    """A CSV file as people leave it.

    With or without a mark at its start, separated by commas, semicolons, tabs or bars, whatever
    the line ends, with empty lines and lines of separators only.
    """
    try:
        return sheet_of(path.read_bytes(), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): check the path.") from error


def sheet_of(content: bytes, path: Path) -> Sheet:
    """The same of the content of a file; ``path`` is what messages call it."""
    text = _text(content, path)
    delimiter = _delimiter(text)
    numbered = _lines(path, text, delimiter)
    filled = [(line, cells) for line, cells in numbered if any(cells)]
    if filled and filled[0][1][0].lower().startswith("sep="):  # for a spreadsheet's eyes only
        filled = filled[1:]
    if not filled:
        raise BadInput(f"{path} is empty: give a table with a line for each instance.")
    columns = _columns(path, filled[0][1])
    rows = [Row(line, _named(path, columns, line, cells)) for line, cells in filled[1:]]
    return Sheet(path, columns, rows)


def _text(content: bytes, path: Path) -> str:
    try:
        encoding = "utf-16" if content.startswith(UTF16) else "utf-8-sig"
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: save it as 'CSV UTF-8'.") from error


def _delimiter(text: str) -> str:
    """What the first line with something in it is separated by."""
    lines = (line for line in text.splitlines() if line.strip(DELIMITERS + " "))
    first = next(lines, "")
    if first.lower().startswith("sep=") and len(first) > 4:
        return first[4]
    return max(DELIMITERS, key=first.count)


def _lines(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise BadInput(
            f"{path} is no table ({error}, line {reader.line_num}): repair it."
        ) from error


def _columns(path: Path, cells: Sequence[str]) -> tuple[str, ...]:
    names = [cell.lower() for cell in cells]
    while names and not names[-1]:
        names.pop()
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{path} has several columns {twice[0]!r}: remove or rename some.")
    return tuple(names)


def _named(path: Path, columns: Sequence[str], line: int, cells: Sequence[str]) -> dict[str, str]:
    if any(cells[len(columns) :]):
        raise BadInput(
            f"{path} has more cells in line {line} than names of columns: put cells with "
            "separators in them into quotes."
        )
    padded = [*cells, *[""] * len(columns)]
    return dict(zip(columns, padded, strict=False))
