from __future__ import annotations

import json
from pathlib import Path

import pytest

from cilf.errors import BadInput
from cilf.report import Table
from cilf.report.paper_items import INDEX, read_paper_items

TABLE = Table("Title", ("learner", "NA"), (("a|b", 0.5), ("**c**", None)), frozenset({(0, 1)}), "n")


def write_index(folder: Path, **files: list[str]) -> None:
    items = {name: {"title": "T", "about": "A", "files": each} for name, each in files.items()}
    (folder / INDEX).write_text(json.dumps({"items": items}), encoding="utf-8")


def test_tables_and_images_come_back_in_order(tmp_path: Path) -> None:
    (tmp_path / "table10.json").write_text(TABLE.to_json(), encoding="utf-8")
    (tmp_path / "table2.json").write_text(TABLE.to_json(), encoding="utf-8")
    (tmp_path / "figure5.png").write_bytes(b"pixels")
    write_index(
        tmp_path, figure5=["figure5.png", "figure5.svg"], figure6=[],
        table10=["table10.md", "table10.json"], table2=["table2.json"],
    )  # fmt: skip
    items = read_paper_items(tmp_path)
    assert [item.heading for item in items] == ["Table 2. T", "Table 10. T", "Figure 5. T"]
    assert items[0].table == TABLE
    assert [name for name, _ in items[2].images] == ["figure5"]


def test_without_an_index_there_is_nothing(tmp_path: Path) -> None:
    assert read_paper_items(tmp_path) == []


@pytest.mark.parametrize("content", ["{}", '{"title": "T"}', "no JSON"])
def test_a_damaged_table_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "table2.json").write_text(content, encoding="utf-8")
    write_index(tmp_path, table2=["table2.json"])
    with pytest.raises(BadInput, match="run 'cilf paper' again"):
        read_paper_items(tmp_path)


@pytest.mark.parametrize(
    "files", [["../secret.png"], ["/dev/zero.png"], ["a/b.png"], ["\ud800.png"], [3], "table2.json"]
)
def test_an_index_names_files_beside_it_alone(tmp_path: Path, files: list[str]) -> None:
    write_index(tmp_path, table2=files)
    with pytest.raises(
        BadInput, match=r"has no valid items\.table2\.files.*run 'cilf paper' again"
    ):
        read_paper_items(tmp_path)


def test_a_table_with_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    content = json.loads(TABLE.to_json())
    content["rows"][0].append(1)
    (tmp_path / "table2.json").write_text(json.dumps(content), encoding="utf-8")
    write_index(tmp_path, table2=["table2.json"])
    with pytest.raises(BadInput, match=r"table2\.json has a row of another length"):
        read_paper_items(tmp_path)
