"""The table of formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from cilf.workflow.formats import FORMATS, find_format
from cilf.workflow.formats.contents import EVERYTHING, FORMS


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_of_the_table_is_complete(name: str) -> None:
    format = FORMATS[name]
    assert set(format.carries) <= set(EVERYTHING)
    assert set(format.forms) <= set(FORMS)
    assert format.suffix != ".json" or format.is_own is not None
    files = [other.file for other in FORMATS.values()]
    assert files.count(format.file) == 1


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.json", "[]", "label-studio"),
        ("a.json", '{"samples": []}', "fiftyone"),
        ("a.JSON", '{"images": [], "annotations": []}', "coco"),
        ("a.json", "{}", None),
        ("a.json", "[" * 100_000, None),
        ("a.json", "no", None),
        ("a.xml", "", "cvat"),
        ("a.jsonl", "", "jsonl"),
        ("a.csv", "", "csv"),
        ("a.txt", "", None),
    ],
)
def test_a_file_says_its_format(
    name: str, content: str, format: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    assert find_format(tmp_path / name) == format


@pytest.mark.parametrize("name", FORMATS)
def test_the_documentation_has_its_row(name: str) -> None:
    format = FORMATS[name]
    row = (
        f"| `{name}` | `{format.file}` | {', '.join(format.forms)} | {', '.join(format.carries)} |"
    )
    page = Path(__file__).parents[3] / "docs" / "interoperability.md"
    assert row in page.read_text(encoding="utf-8")
