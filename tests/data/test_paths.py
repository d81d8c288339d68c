from __future__ import annotations

from pathlib import Path

import pytest

from cilf.data import load_dataset
from cilf.data.paths import lies_inside, looks_like_path
from cilf.errors import BadConfig, BadInput


@pytest.mark.parametrize("name", ["", "x" * 3000])
def test_names_that_no_path_can_have_are_no_paths(name: str) -> None:
    with pytest.raises(BadConfig, match=r"unknown data set .*Or give hf:ID, or the path"):
        load_dataset(name)


def test_a_path_that_cannot_be_looked_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        load_dataset(tmp_path / ("x" * 3000))


def test_a_path_is_told_from_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for text in ("photos", "./nothing", "a\\b", "rows.csv", "rows.CSV.gz"):
        assert looks_like_path(text), text
    assert not looks_like_path("mnist")


def test_output_inside_the_data_is_noticed(tmp_path: Path) -> None:
    assert lies_inside(tmp_path / "a" / "b", str(tmp_path))
    assert not lies_inside(tmp_path / "a", str(tmp_path / "b"))
    assert not lies_inside(tmp_path / "a", "")
