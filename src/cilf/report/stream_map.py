"""The map of a stream: which class comes when, as a figure and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cilf.core import Label
from cilf.report.figures import import_matplotlib, write_figure
from cilf.stream import Stream

MAX_NAME_LENGTH = 28  # characters of a class name
MAX_NUMBERED = 20  # classes, or windows; with more there is no room for numbers
MAX_SIDE = 80.0  # inches; rows and columns get narrower to stay below

# Blue and orange stay apart for every colour vision, and dark, middle and light in grey.
FILL = {"initial": "#14497b", "novel": "#f09a1a", "known": "#c9ddef"}
INK = {"initial": "white", "novel": "black", "known": "black"}
MEANING = {"initial": "initial training data", "novel": "novel in this window", "known": "known"}
END = "#000000"
GAP = 0.35  # columns between the initial training data and the first window


class PlanRow(NamedTuple):
    """One window of a stream; window 0 is the initial training data."""

    window: int
    novel: tuple[tuple[Label, int], ...]  # classes that start here, with their instances
    n_known: int  # classes that came earlier and are still here
    vanished: tuple[Label, ...]  # classes that were in the window before and are no longer
    n_instances: int


def list_windows(stream: Stream) -> list[PlanRow]:
    """List the windows of a stream, the initial training data first.

    >>> from cilf.data import load_dataset
    >>> from cilf.stream import multiple_novel
    >>> for row in list_windows(multiple_novel(load_dataset("digits"), seed=0))[:2]:
    ...     print(row.window, row.novel, row.n_known, row.vanished)
    0 ((9, 57), (3, 58), (6, 58)) 0 ()
    1 ((5, 28), (0, 28)) 3 ()
    """
    rows = [_row(stream, 0, stream.plan.initial, (), ())]
    before = stream.plan.initial
    for index, window in enumerate(stream.plan.windows, start=1):
        rows.append(_row(stream, index, window.novel, window.known, before))
        before = window.classes
    return rows


def _row(
    stream: Stream,
    index: int,
    starting: tuple[Label, ...],
    known: tuple[Label, ...],
    before: tuple[Label, ...],
) -> PlanRow:
    counts = stream.counts(index)
    return PlanRow(
        window=index,
        novel=tuple((label, counts[label]) for label in starting),
        n_known=len(known),
        vanished=tuple(label for label in before if label not in known),
        n_instances=sum(counts.values()),
    )


def write_stream_map(stream: Stream, path: Path) -> Path:
    """Write the map to a PNG or SVG file, by the suffix of the path, and return the path.

    A row is a class, in order of arrival; a column is a window. Equal streams give equal files
    with the same version of matplotlib.
    """
    return write_figure(plot_stream(stream), path)


def plot_stream(stream: Stream) -> Any:
    """Make a figure of matplotlib that shows the map."""
    layout = _Layout(len(stream.plan.arrivals), len(stream))
    figure = import_matplotlib("matplotlib.figure").Figure(figsize=layout.size)
    axes = figure.add_axes((0, 0, 1, 1))
    plot_map(axes, stream, layout.row)
    return figure


def plot_map(axes: Any, stream: Stream, row: float) -> None:
    """Plot the map on these axes, whose rows are ``row`` inches high."""
    font = min(9.0, 72 * row * 0.68)
    cells = list(_cells(stream))
    _plot_cells(axes, cells)
    if len(stream.plan.arrivals) <= MAX_NUMBERED and len(stream) <= MAX_NUMBERED:
        _plot_counts(axes, cells, font)
    _plot_ends(axes, stream)
    _label_axes(axes, stream, font)
    _title(axes, stream)
    _legend(axes, stream)


@dataclass(frozen=True)
class _Layout:
    """The size of the figure in inches."""

    n_classes: int
    n_windows: int

    @property
    def row(self) -> float:
        roomy = 0.3 if self.n_classes <= MAX_NUMBERED else 0.16
        return min(roomy, MAX_SIDE / self.n_classes)

    @property
    def column(self) -> float:
        roomy = 0.58 if self.n_windows <= MAX_NUMBERED else 0.3
        return min(roomy, MAX_SIDE / self.n_windows)

    @property
    def size(self) -> tuple[float, float]:
        return (_x(self.n_windows) + 1) * self.column, self.n_classes * self.row


class _Cell(NamedTuple):
    x: float
    y: int
    state: str
    n_instances: int


def _x(window: int) -> float:
    """Left edge of a window's column."""
    return window + (GAP if window else 0.0)


def _cells(stream: Stream) -> Iterator[_Cell]:
    rows = {label: y for y, label in enumerate(stream.plan.arrivals)}
    for label, count in stream.counts(0).items():
        yield _Cell(0.0, rows[label], "initial", count)
    for index, window in enumerate(stream.plan.windows, start=1):
        for label, count in stream.counts(index).items():
            state = "novel" if label in window.novel else "known"
            yield _Cell(_x(index), rows[label], state, count)


def _plot_cells(axes: Any, cells: list[_Cell]) -> None:
    rectangle = import_matplotlib("matplotlib.patches").Rectangle
    collection = import_matplotlib("matplotlib.collections").PatchCollection
    for state, fill in FILL.items():
        squares = [rectangle((cell.x, cell.y), 1, 1) for cell in cells if cell.state == state]
        axes.add_collection(
            collection(squares, facecolor=fill, edgecolor="white", linewidth=0.8, label=state)
        )


def _plot_counts(axes: Any, cells: list[_Cell], font: float) -> None:
    for cell in cells:
        axes.text(
            cell.x + 0.5, cell.y + 0.52, str(cell.n_instances), ha="center", va="center",
            color=INK[cell.state], fontsize=font,
            fontweight="bold" if cell.state == "novel" else "normal",
        )  # fmt: skip


def _find_last_windows(stream: Stream) -> dict[Label, int]:
    """The last window of each class that is gone before the stream ends."""
    rows = list_windows(stream)
    return {label: row.window - 1 for row in rows for label in row.vanished}


def _plot_ends(axes: Any, stream: Stream) -> None:
    rows = {label: y for y, label in enumerate(stream.plan.arrivals)}
    for label, last in _find_last_windows(stream).items():
        x, y = _x(last) + 1, rows[label]
        axes.plot([x, x], [y + 0.06, y + 0.94], color=END, linewidth=3, solid_capstyle="butt")


def _label_axes(axes: Any, stream: Stream, font: float) -> None:
    names = [_shorten(label) for label in stream.plan.arrivals]
    columns = range(len(stream) + 1)
    axes.set_xlim(0, _x(len(stream)) + 1)
    axes.set_ylim(len(names), 0)
    axes.set_yticks([y + 0.5 for y in range(len(names))], names, fontsize=font)
    axes.set_xticks([_x(i) + 0.5 for i in columns], _column_names(stream), fontsize=9)
    axes.tick_params(length=0, labeltop=len(names) > MAX_NUMBERED)
    axes.set_xlabel("window, + classes that start in it", fontsize=9, loc="left")
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a class may be called "$5"
    for spine in axes.spines.values():
        spine.set_visible(False)


def _column_names(stream: Stream) -> list[str]:
    plan = stream.plan
    windows = enumerate(plan.windows, start=1)
    starting = [f"{index}\n+{len(window.novel)}" for index, window in windows]
    return [f"start\n+{len(plan.initial)}", *starting]


def _shorten(label: Label) -> str:
    name = " ".join(str(label).split())
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def _title(axes: Any, stream: Stream) -> None:
    plan = stream.plan
    n_later = len(plan.arrivals) - len(plan.initial)
    lines = [
        f"{stream.name}, seed {stream.seed}",
        f"{len(plan.initial)} classes at the start, {n_later} more in {_windows(len(stream))}",
        f"instances of a class: {_format_range(stream, 0, 0)} at the start, "
        f"{_format_range(stream, 1, len(stream))} in a window",
    ]
    axes.set_title("\n".join(lines), fontsize=9, loc="left", parse_math=False)


def _windows(count: int) -> str:
    return "1 window" if count == 1 else f"{count} windows"


def _format_range(stream: Stream, first: int, last: int) -> str:
    """The fewest and the most instances of a class in these windows."""
    counts = [n for index in range(first, last + 1) for n in stream.counts(index).values()]
    fewest, most = min(counts), max(counts)
    return str(most) if fewest == most else f"{fewest} to {most}"


def _legend(axes: Any, stream: Stream) -> None:
    patches, lines = import_matplotlib("matplotlib.patches"), import_matplotlib("matplotlib.lines")
    handles = [patches.Patch(facecolor=FILL[state], label=MEANING[state]) for state in FILL]
    if _find_last_windows(stream):
        marker = {"marker": "|", "markersize": 10, "markeredgewidth": 3, "linestyle": "none"}
        handles.append(lines.Line2D([], [], color=END, label="vanishes here", **marker))
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9,
        borderaxespad=0,
    )  # fmt: skip
