from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cilf.benchmark.paper.panels import (
    COLOURS,
    MARKERS,
    MAX_LEGEND,
    OURS,
    Map,
    Series,
    choose_style,
    plot_heatmaps,
    plot_lines,
    plot_maps,
    write_files,
)
from cilf.report import Table
from cilf.report.tables import MISSING

pytest.importorskip("matplotlib")


def test_styles_differ_until_every_colour_has_every_marker() -> None:
    n = len(COLOURS) * len(MARKERS)
    assert len({choose_style(index) for index in range(n)}) == n
    assert len({choose_style(index).colour for index in range(len(COLOURS))}) == len(COLOURS)


def test_our_line_is_black_and_on_top() -> None:
    line = Series([1, 2], [0.5, 0.6], [0.1, 0.1])
    (axes,) = plot_lines({"NA": {"cpe": line, OURS: line}}, "window").axes
    other, ours = axes.lines
    assert (ours.get_label(), ours.get_color()) == (OURS, "black")
    assert ours.get_zorder() > other.get_zorder()


def test_a_heat_map_prints_its_numbers_and_leaves_gaps() -> None:
    values = np.array([[0.1, 0.9], [np.nan, 0.5]])
    axes = plot_heatmaps({"single": values}, [0.1, 10.0], ("λ1", "λ2")).axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.100", "0.900", MISSING, "0.500"]


def test_a_legend_names_few_classes_and_leaves_many_out() -> None:
    def legends(n: int) -> int:
        names = np.array([str(i) for i in range(n)])
        places = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
        map_ = Map(places, names, np.arange(n) >= n - 1)
        return len(plot_maps({"cilf": {"window 1": map_}}, names.tolist()).legends)

    assert (legends(MAX_LEGEND), legends(MAX_LEGEND + 1)) == (1, 0)


def test_the_numbers_lie_beside_the_figure(tmp_path: Path) -> None:
    figure = plot_lines({"NA": {"cpe": Series([1], [0.5], [0.1])}}, "window")
    files = write_files(figure, Table("", ("window", "value"), ((1, 0.5),)), tmp_path, "figure6")
    assert [file.name for file in files] == ["figure6.png", "figure6.svg", "figure6.csv"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert files[2].read_text() == "window,value\n1,0.5\n"
