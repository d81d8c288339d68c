from __future__ import annotations

from pathlib import Path

import pytest

from cilf.errors import BadConfig
from cilf.report.figures import new_figure, write_figure

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_equal_figures_give_equal_files(tmp_path: Path, suffix: str) -> None:
    paths = []
    for name in ("one", "other"):
        figure = new_figure(2, 2)
        figure.subplots().plot([1, 2], [3, 1])
        paths.append(write_figure(figure, tmp_path / name / f"figure{suffix}"))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"unknown format of a figure '\.pdf'"):
        write_figure(new_figure(1, 1), tmp_path / "figure.pdf")
