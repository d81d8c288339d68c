from __future__ import annotations

from pathlib import Path

import pytest

from cilf.cli.options import require_outside, select_given
from cilf.errors import BadConfig


def test_only_given_options_are_passed_on() -> None:
    assert select_given(a=None, b=False, c=0, d="", e=True) == {"c": 0, "d": "", "e": True}


def test_output_may_not_lie_inside_the_data(tmp_path: Path) -> None:
    data = tmp_path / "photos"
    data.mkdir()
    require_outside(str(data), tmp_path / "runs")
    with pytest.raises(BadConfig, match="lies inside the data"):
        require_outside(str(data), data / "runs")


def test_the_name_of_a_data_set_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("digits").mkdir()
    require_outside("digits", Path("digits/run"))
    with pytest.raises(BadConfig, match="lies inside the data"):
        require_outside(Path("digits"), Path("digits/run"))
