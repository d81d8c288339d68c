"""The dialect of a CSV file as people leave it: encoding, delimiter, decimal point."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

DELIMITERS = ",;\t|"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SEPARATOR_LINE = re.compile(r"sep=([,;:|^~\t]) *", re.IGNORECASE)  # some spreadsheets write it
DECIMAL_COMMA = re.compile(r"(?:^|;)\s*-?\d+,\d+\s*(?:;|$)", re.MULTILINE)


class Dialect(NamedTuple):
    """The encoding, delimiter and decimal point of a CSV file."""

    encoding: str
    delimiter: str
    decimal_point: str  # "." or ","
    n_skipped: int  # lines before the header that hold no cells


def detect_dialect(start: bytes, default: str = ",") -> Dialect:
    r"""Detect the dialect of a file from its first bytes.

    The delimiter is the most frequent one of the header, else ``default``.

    >>> detect_dialect(b"\xef\xbb\xbfname;size\nant;1,5\n")
    Dialect(encoding='utf-8-sig', delimiter=';', decimal_point=',', n_skipped=0)
    """
    encoding = "utf-16" if start.startswith(UTF16) else "utf-8-sig"
    text = start.decode(encoding, errors="replace")
    lines = text.splitlines()
    blank = DELIMITERS + " "
    first = next((number for number, line in enumerate(lines) if line.strip(blank)), None)
    if first is None:
        return Dialect(encoding, default, ".", 0)
    stated = SEPARATOR_LINE.fullmatch(lines[first])
    if stated:
        return Dialect(encoding, stated[1], _decimal_point(stated[1], text), first + 1)
    header = re.sub('"[^"]*"', "", lines[first])
    delimiter = max(default + DELIMITERS, key=header.count)
    return Dialect(encoding, delimiter, _decimal_point(delimiter, text), 0)


def _decimal_point(delimiter: str, text: str) -> str:
    return "," if delimiter == ";" and DECIMAL_COMMA.search(text) else "."
