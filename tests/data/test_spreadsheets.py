from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from cilf.data import spreadsheets
from cilf.data.spreadsheets import Row, format_csv, read_sheet
from cilf.errors import BadInput

PLAIN = "identity,name\na b.png,Käfer\n\n,\nc.png,\n"
ROWS = [("a b.png", "Käfer"), ("c.png", "")]


def rows_of(path: Path) -> list[tuple[str, ...]]:
    sheet = read_sheet(path)
    assert sheet.columns == ("identity", "name")
    return [tuple(row.cells.values()) for row in sheet.rows]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        PLAIN.replace(",", ";").replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + ("sep=;\n" + PLAIN.replace(",", ";")).encode(),
        PLAIN.replace(",", "\t").encode("utf-16"),
        ("\n\n" + PLAIN).encode(),
        PLAIN.replace("identity,name", '"Identity", NAME ,,').encode(),
        PLAIN.replace("a b.png,Käfer", '"a b.png"," Käfer "').replace("\n", "\r").encode(),
        PLAIN.rstrip(",\n").encode(),
    ],
    ids=["plain", "mark", "semicolons", "sep", "utf-16", "blank", "head", "quotes", "ragged"],
)
def test_a_table_reads_the_same_whoever_saved_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    assert rows_of(tmp_path / "t.csv") == ROWS


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n\nx\n")
    assert read_sheet(tmp_path / "t.csv").rows == [Row(3, {"a": "x"})]
    (tmp_path / "t.csv").write_text('a\n"two\nlines"\nx\n')
    assert [row.line for row in read_sheet(tmp_path / "t.csv").rows] == [2, 4]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\n,,\n", "is empty"),
        ("identity,name\na,Käfer\n".encode("latin-1"), "is not UTF-8: save it as 'CSV UTF-8'"),
        (b"name,Name\na,b\n", "several columns 'name'"),
        (b"identity,name\na,b,c\n", "more cells in line 2"),
        (b'identity,name\n"a,b\n', "is no table"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        read_sheet(tmp_path / "t.csv")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"t\.csv cannot be read"):
        read_sheet(tmp_path / "t.csv")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows = [('odd, "name";.png', "ü"), ("two\nlines", "=x"), ("bad \udce9.png", "y")]
    (tmp_path / "t.csv").write_bytes(format_csv(("identity", "name"), rows))
    assert rows_of(tmp_path / "t.csv") == [*rows[:2], ("bad \\udce9.png", "y")]
    assert format_csv(("a",), [("plain",)]) == b"a\nplain\n"


def test_a_spreadsheet_computes_no_cell(tmp_path: Path) -> None:
    cells = ["=1+1", "+cmd", "@x", "-a", "\t=1", "-1.5", "+2", "-", "'quoted'", "a=b"]
    written = format_csv(("identity", "name"), [(cell, "") for cell in cells])
    (tmp_path / "t.csv").write_bytes(written)
    shown = [line.partition(",")[0] for line in written.decode().splitlines()[1:]]
    escaped = ["'=1+1", "'+cmd", "'@x", "'-a", "'\t=1"]
    assert shown == [*escaped, *cells[5:]]
    read = [cell for cell, _ in rows_of(tmp_path / "t.csv")]
    assert read == ["=1+1", "+cmd", "@x", "-a", "\t=1", *cells[5:]]


def test_a_header_of_very_many_columns(tmp_path: Path) -> None:
    """It takes minutes if each name is compared with each other."""
    names = [f"column {number}" for number in range(200_000)]
    path = tmp_path / "wide.csv"
    path.write_text(f"{','.join(names)}\n{',' * len(names)}1\n".replace(",1\n", "1\n"))
    sheet = read_sheet(path)
    assert sheet.columns == tuple(names)
    assert sheet.rows[0].cells[names[-1]] == "1"
    path.write_text(",".join([*names, names[-1]]) + "\n1\n")
    with pytest.raises(BadInput, match="several columns 'column 199999'"):
        read_sheet(path)


def test_many_rows_are_formatted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(str(i), "é" if i == 6 else "e") for i in range(8)]
    whole = format_csv(("a", "b"), rows)
    monkeypatch.setattr(spreadsheets, "ROWS_AT_ONCE", 3)
    assert format_csv(("a", "b"), iter(rows)) == whole
    assert whole.startswith("\ufeff".encode())  # though the first piece is ASCII
