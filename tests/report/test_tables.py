from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from cilf.report import Table

TABLE = Table(
    "A & B: 50 %",
    ("method", "NA_1", "K"),
    (("x|y", 0.12345, 3), ("c{d}", math.nan, None)),
    bold=frozenset({(0, 1)}),
)


def test_markdown_escapes_aligns_and_marks_the_best() -> None:
    lines = TABLE.to_markdown().splitlines()
    assert lines[0] == "**A & B: 50 %**"
    assert lines[2:] == [
        r"| method | NA\_1 | K |",
        "| :--- | ---: | ---: |",
        r"| x\|y | **0.123** | 3 |",
        "| c{d} | \N{EN DASH} | \N{EN DASH} |",
    ]


def test_csv_keeps_full_numbers_and_leaves_missing_ones_empty() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    assert rows == [["method", "NA_1", "K"], ["x|y", "0.12345", "3"], ["c{d}", "", ""]]


def test_latex_escapes_every_special_sign() -> None:
    text = TABLE.to_latex()
    assert r"\caption{A \& B: 50 \%}" in text
    assert r"method & NA\_1 & K \\" in text
    assert r"x$|$y & \textbf{0.123} & 3 \\" in text
    assert r"c\{d\} & -- & -- \\" in text
    assert r"\begin{tabular}{lrr}" in text


def test_latex_of_a_backslash_is_not_escaped_twice() -> None:
    assert r"\textbackslash{}\_" in Table("t", ("a",), (("\\_",),)).to_latex()


def test_write_makes_the_three_files(tmp_path: Path) -> None:
    TABLE.write(tmp_path, "scores")
    assert {p.name for p in tmp_path.iterdir()} == {"scores.md", "scores.csv", "scores.tex"}
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8") == TABLE.to_csv()
