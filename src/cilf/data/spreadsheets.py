"""CSV files that people edit in a spreadsheet or write by hand."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from cilf.data.csv_dialect import detect_dialect
from cilf.errors import BadInput

ROWS_AT_ONCE = 10_000  # whose text is held beside the bytes of the rows before
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # tells spreadsheets that a file is UTF-8


class Row(NamedTuple):
    """A line that is not empty."""

    line: int  # in which it begins, counted from 1
    cells: dict[str, str]  # column -> text without surrounding blanks


@dataclass(frozen=True)
class Sheet:
    """The rows of a file; the names of the columns are in lower case."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]


def format_csv(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, raw: bool = False
) -> bytes:
    """Format rows as a CSV file, with a byte order mark unless all of it is ASCII.

    Characters that are no Unicode are escaped, see :func:`escape_surrogates`, and so are cells that
    a spreadsheet would compute, see :func:`escape_formula`. If they are ``raw``, cells stay as they
    are.
    """
    left, pieces = chain([columns], rows), list[bytes]()
    while some := list(islice(left, ROWS_AT_ONCE)):
        pieces.append(_format_rows(some, raw))
    if not all(map(bytes.isascii, pieces)):
        pieces.insert(0, BYTE_ORDER_MARK.encode())
    return b"".join(pieces)


def _format_rows(rows: Iterable[Sequence[object]], raw: bool) -> bytes:
    """Format some rows, without a byte order mark."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        cells = [str(cell) for cell in row]
        writer.writerow(cells if raw else map(escape_formula, cells))
    return escape_surrogates(text.getvalue()).encode()


def escape_formula(text: str) -> str:
    """Put an apostrophe before a text that spreadsheets take for a formula; not before a number.

    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("-"), escape_formula("a-b")
    ("'=1+1", '-1.5', '-', 'a-b')
    """
    return f"'{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    if not text.startswith(FORMULA_SIGNS) or len(text) == 1:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def escape_surrogates(text: str) -> str:
    r"""Escape what a text file cannot hold: the name of a file need not be Unicode.

    >>> escape_surrogates("caf\udce9.png")
    'caf\\udce9.png'
    """
    return text.encode(errors="backslashreplace").decode()


def read_sheet(path: Path) -> Sheet:
    """Read a CSV file as people leave it.

    The dialect is detected, see :mod:`cilf.data.csv_dialect`. Empty lines are left out.
    """
    try:
        return parse_sheet(path.read_bytes(), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): check the path.") from error


def parse_sheet(content: bytes, path: Path) -> Sheet:
    """Parse the content of a CSV file; ``path`` is its name in messages."""
    dialect = detect_dialect(content)
    lines = _split_lines(path, _decode(content, dialect.encoding, path), dialect.delimiter)
    filled = [(line, cells) for line, cells in lines if any(cells) and line > dialect.n_skipped]
    if not filled:
        raise BadInput(f"{path} is empty: give a table with a line for each instance.")
    columns = _read_header(path, filled[0][1])
    rows = [Row(line, _name_cells(path, columns, line, cells)) for line, cells in filled[1:]]
    return Sheet(path, columns, rows)


def _decode(content: bytes, encoding: str, path: Path) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: save it as 'CSV UTF-8'.") from error


def _split_lines(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, last = [], 0
    try:
        for cells in reader:  # a cell in quotes may span several lines
            lines.append((last + 1, [_restore_formula(cell.strip()) for cell in cells]))
            last = reader.line_num
        return lines
    except csv.Error as error:
        raise BadInput(
            f"{path} is no table ({error}, line {reader.line_num}): repair it."
        ) from error


def _restore_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _read_header(path: Path, cells: Sequence[str]) -> tuple[str, ...]:
    names = [cell.lower() for cell in cells]
    while names and not names[-1]:
        names.pop()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(f"{path} has several columns {twice[0]!r}: remove or rename some.")
    return tuple(names)


def _name_cells(
    path: Path, columns: Sequence[str], line: int, cells: Sequence[str]
) -> dict[str, str]:
    if any(cells[len(columns) :]):
        raise BadInput(
            f"{path} has more cells in line {line} than names of columns: put cells with "
            "separators in them into quotes."
        )
    padded = [*cells, *[""] * len(columns)]
    return dict(zip(columns, padded, strict=False))
