from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core import Label
from cilf.data import Dataset
from cilf.errors import BadConfig, BadInput
from cilf.report.stream_map import FILL, list_windows, plot_stream, write_stream_map
from cilf.stream import Stream, multiple_novel, single_novel

pytest.importorskip("matplotlib")
LONG = "a class name that is far too long to be shown in full"
NAMES = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "$5 or $6", LONG]


def dataset(classes: list[Label], per_class: int = 60) -> Dataset:
    y_train, y_test = np.repeat(classes, per_class), np.array(classes)
    X_train, X_test = np.zeros((len(y_train), 1)), np.zeros((len(y_test), 1))
    return Dataset.from_arrays("animals", X_train, y_train, X_test, y_test)


@pytest.fixture(scope="module")
def stream() -> Stream:
    return multiple_novel(dataset([*NAMES]), seed=4, vanishing=0.2, n_quiet=1)


def cells(axes: Any, state: str) -> set[tuple[int, int]]:
    """Row and window of the cells that are painted as this."""
    (squares,) = (c for c in axes.collections if c.get_label() == state)
    corners = (path.get_extents().min for path in squares.get_paths())
    return {(round(y), int(x)) for x, y in corners}


def planned(stream: Stream, state: str) -> set[tuple[int, int]]:
    rows = {label: row for row, label in enumerate(stream.plan.arrivals)}
    if state == "initial":
        return {(rows[label], 0) for label in stream.plan.initial}
    windows = enumerate(stream.plan.windows, start=1)
    return {(rows[label], index) for index, w in windows for label in getattr(w, state)}


# ----------------------------------------------------------------- rows


def test_rows_tell_the_plan(stream: Stream) -> None:
    first, *rows = list_windows(stream)
    assert first.window == first.n_known == 0
    assert first.novel == tuple((label, 24) for label in stream.plan.initial)
    assert first.n_instances == len(stream.initial.y)
    for row, window in zip(rows, stream, strict=True):
        assert row.window == window.index
        assert [label for label, _ in row.novel] == list(window.novel)
        assert all(count == (window.y == label).sum() for label, count in row.novel)
        assert row.n_known == len(window.known)
        assert row.n_instances == len(window.y)


def test_rows_tell_when_a_class_is_gone(stream: Stream) -> None:
    rows = list_windows(stream)
    gone = [label for row in rows for label in row.vanished]
    assert len(gone) == len(set(gone)) == 3
    for row in rows[1:]:
        before = stream.counts(row.window - 1)
        assert set(row.vanished) == set(before) - set(stream.counts(row.window))


def test_rows_of_a_quiet_window_have_no_novel_class(stream: Stream) -> None:
    assert [row.novel for row in list_windows(stream)].count(()) == 1


# ----------------------------------------------------------------- the figure


@pytest.mark.parametrize("state", ["initial", "novel", "known"])
def test_a_cell_is_painted_where_a_class_is(stream: Stream, state: str) -> None:
    (axes,) = plot_stream(stream).axes
    assert cells(axes, state) == planned(stream, state)


def test_every_cell_says_how_many(stream: Stream) -> None:
    (axes,) = plot_stream(stream).axes
    said = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in axes.texts}
    rows = {label: row for row, label in enumerate(stream.plan.arrivals)}
    assert said == {
        (rows[label], index): str(count)
        for index in range(len(stream) + 1)
        for label, count in stream.counts(index).items()
    }


def test_a_vanished_class_has_an_end_mark_at_its_last_cell(stream: Stream) -> None:
    (axes,) = plot_stream(stream).axes
    rows = {label: row for row, label in enumerate(stream.plan.arrivals)}
    gone = {(rows[label], r.window - 1) for r in list_windows(stream) for label in r.vanished}
    ends = {(int(line.get_ydata()[0]), int(line.get_xdata()[0]) - 1) for line in axes.lines}
    assert ends == gone
    assert "vanishes here" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_without_vanished_classes_there_is_no_end_mark() -> None:
    (axes,) = plot_stream(single_novel(dataset([1, 2, 3, 4]), vanishing=0)).axes
    assert list(axes.lines) == []
    assert len(axes.get_legend().get_texts()) == 3


def test_names_are_in_order_of_arrival_and_short(stream: Stream) -> None:
    (axes,) = plot_stream(stream).axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert [name for name in shown if not name.endswith("…")] == [
        label for label in stream.plan.arrivals if label != LONG
    ]
    assert shown[list(stream.plan.arrivals).index(LONG)] == "a class name that is far to…"


def test_the_title_says_which_stream(stream: Stream) -> None:
    (axes,) = plot_stream(stream).axes
    title = axes.get_title(loc="left")
    assert title.splitlines()[0] == "animals-multiple, seed 4"
    assert "3 classes at the start, 7 more in 4 windows" in title
    assert "24 at the start" in title


def test_colours_differ_in_grey_too() -> None:
    greys = []
    for colour in FILL.values():
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        greys.append(0.299 * red + 0.587 * green + 0.114 * blue)
    steps = np.diff(sorted([*greys, 1.0]))  # the last is the paper
    assert steps.min() > 0.12


# ----------------------------------------------------------------- the file


def test_a_png_shows_the_colours_of_its_cells(stream: Stream, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    path = write_stream_map(stream, tmp_path / "made" / "map.png")
    with image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    shares = {
        state: (pixels == [int(colour[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=1).mean()
        for state, colour in FILL.items()
    }
    n_cells = {state: len(planned(stream, state)) for state in FILL}
    for state in FILL:  # numbers, and a legend, take or add a little
        expected = shares["known"] * n_cells[state] / n_cells["known"]
        assert shares[state] == pytest.approx(expected, rel=0.25)


def test_equal_streams_give_equal_files(stream: Stream, tmp_path: Path) -> None:
    again = multiple_novel(dataset([*NAMES]), seed=4, vanishing=0.2, n_quiet=1)
    for suffix in (".png", ".svg"):
        one = write_stream_map(stream, tmp_path / f"one{suffix}")
        two = write_stream_map(again, tmp_path / f"two{suffix}")
        assert one.read_bytes() == two.read_bytes()


def test_an_svg_keeps_names_as_text(tmp_path: Path) -> None:
    letters = dataset(["狗", "猫", "<b>", "$x"])
    svg = write_stream_map(single_novel(letters), tmp_path / "map.svg").read_text(encoding="utf-8")
    for name in ("狗", "猫", "&lt;b&gt;", "$x", "animals-single"):
        assert name in svg


def test_letters_that_a_png_lacks_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_stream_map(single_novel(dataset(["狗", "猫", "cat"])), tmp_path / "map.png")
    assert [record.message for record in caplog.records] == [
        "the font lacks letters of some class names: an .svg file shows them."
    ]


def test_a_hundred_classes_stay_readable(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    large = multiple_novel(dataset([*range(100)], per_class=200), vanishing=0.1)
    (axes,) = plot_stream(large).axes
    assert list(axes.texts) == []  # no room for numbers
    with image.open(write_stream_map(large, tmp_path / "map.png")) as picture:
        _, height = picture.size
    labels = axes.get_yticklabels()
    assert len(labels) == 100
    pixels = labels[0].get_fontsize() / 72 * 150
    assert 12 < pixels < height / 100  # large enough to read, too small to touch the next


@pytest.mark.parametrize("name", ["map.jpg", "map", "map.pngg"])
def test_other_formats_are_refused(stream: Stream, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadConfig, match=r"unknown format of a figure .*Known: \.png, \.svg"):
        write_stream_map(stream, tmp_path / name)


def test_a_folder_that_cannot_be_is_refused(stream: Stream, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot make"):
        write_stream_map(stream, tmp_path / "file" / "map.png")


def test_no_global_state_of_matplotlib_is_touched(stream: Stream, tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    loaded = "matplotlib.pyplot" in sys.modules
    write_stream_map(stream, tmp_path / "map.svg")
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_without_matplotlib_the_extra_is_named(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BadConfig, match=r"plotting figures needs matplotlib: pip install"):
        write_stream_map(stream, tmp_path / "map.png")
    assert not (tmp_path / "map.png").exists()
