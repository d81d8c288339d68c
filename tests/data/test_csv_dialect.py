from __future__ import annotations

import pytest

from cilf.data.csv_dialect import detect_dialect


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal_point", "n_skipped"),
    [
        ("a,b\n1,2\n", ",", ".", 0),
        ("a;b\n1,5;2\n", ";", ",", 0),
        ("a;b\n1.5;one, two\n", ";", ".", 0),
        ("a\tb,c\td\n", "\t", ".", 0),
        ('"x;y;z",label\n', ",", ".", 0),
        ("\n;;\nSEP=|\na|b\n", "|", ".", 3),
        ('sep="\na;b\n', ",", ".", 0),
        ("", ",", ".", 0),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_dialects(
    text: str, delimiter: str, decimal_point: str, n_skipped: int, encoding: str
) -> None:
    expected = (encoding, delimiter, decimal_point, n_skipped)
    assert detect_dialect(text.encode(encoding)) == expected


def test_a_header_without_a_delimiter_leaves_the_default() -> None:
    assert detect_dialect(b"text\none, two\n", default="\t").delimiter == "\t"
    assert detect_dialect(b"text\none, two\n").delimiter == ","
