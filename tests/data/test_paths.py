from __future__ import annotations

from pathlib import Path

import pytest

from cilf.data import load_dataset
from cilf.data.paths import lies_inside, looks_like_path
from cilf.errors import BadConfig, BadInput


@pytest.mark.parametrize("name", ["", "x" * 3000])
def test_names_that_no_path_can_have_are_no_paths(name: str) -> None:
    with pytest.raises(BadInput, match=r"there is no folder or file .*, and no data set has that"):
        load_dataset(name)


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("photso", r"no folder or file photso \(did you mean photos\?\), and no data set has that"),
        ("nowhere", r"no folder or file nowhere, and no data set has that name: give the path"),
        ("./nowhere", r"no folder or file nowhere: give the path of your data\.$"),
        ("~/nowhere", r"no folder or file .*/nowhere: give the path of your data\.$"),
        ("rows.txt", r"no folder or file rows\.txt: give the path of your data\.$"),
    ],
)
def test_a_mistyped_path_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    with pytest.raises(BadInput, match=problem):
        load_dataset(typed)


def test_a_mistyped_name_is_told_the_right_one() -> None:
    with pytest.raises(
        BadConfig, match=r"'mnits': did you mean 'mnist'\? .* no folder or file mni"
    ):
        load_dataset("mnits")


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
