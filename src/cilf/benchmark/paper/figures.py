"""The paper's figures, drawn from numbers, which are written beside them as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cilf.core.files import make_folder, replace_file
from cilf.core.types import Array, Floats
from cilf.report.pictures import new_figure, write_picture
from cilf.report.tables import Table, show

# After Okabe and Ito: told apart with any colour vision. Then again, with other marks.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a800")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
OURS = "cilf"  # drawn on top, in black
PANEL = 3.2  # inches
MOST_NAMED = 12  # classes in a legend


class Style(NamedTuple):
    """How one of several things is drawn."""

    colour: str
    mark: str


def style(index: int) -> Style:
    """The first eight differ in colour, the next eight in their mark too."""
    return Style(COLOURS[index % len(COLOURS)], MARKS[index // len(COLOURS) % len(MARKS)])


def write(figure: Any, rows: Table, out: Path, name: str) -> list[Path]:
    """``name.png``, ``name.svg`` and, with the numbers that are drawn, ``name.csv``."""
    make_folder(out)
    replace_file(out / f"{name}.csv", rows.to_csv().encode())
    pictures = [write_picture(figure, out / f"{name}{suffix}") for suffix in (".png", ".svg")]
    return [*pictures, out / f"{name}.csv"]


class Series(NamedTuple):
    """One line: values over x, and their deviation over seeds."""

    x: Sequence[float]
    y: Sequence[float]
    std: Sequence[float]


def line_panels(
    panels: Mapping[str, Mapping[str, Series]], x_label: str, *, percent: bool = False
) -> Any:
    """A panel for each metric, a line for each learner, one legend for all."""
    figure = new_figure(PANEL * len(panels) + 1.6, PANEL)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for index, (name, line) in enumerate(lines.items()):
            _draw_line(axis, name, line, style(index))
        axis.set_title(title)
        axis.set_xlabel(x_label)
        axis.grid(alpha=0.3)
        if percent:
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        else:
            axis.xaxis.get_major_locator().set_params(integer=True)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False)
    return figure


def _draw_line(axis: Any, name: str, line: Series, drawn: Style) -> None:
    ours = name == OURS
    colour, width = ("black", 2.2) if ours else (drawn.colour, 1.2)
    axis.plot(
        line.x, line.y, color=colour, lw=width, marker=drawn.mark, ms=4, label=name,
        zorder=3 if ours else 2,
    )  # fmt: skip
    low, high = np.subtract(line.y, line.std), np.add(line.y, line.std)
    axis.fill_between(line.x, low, high, color=colour, alpha=0.12, lw=0)


def heat_panels(
    panels: Mapping[str, Array], ticks: Sequence[float], labels: tuple[str, str]
) -> Any:
    """A grid of numbers in each panel: rows by the first label, columns by the second."""
    figure = new_figure((PANEL + 0.4) * len(panels) + 1, PANEL + 0.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    values = np.concatenate([grid.ravel() for grid in panels.values()])
    low, high = np.nanmin(values), np.nanmax(values)
    for axis, (title, grid) in zip(axes, panels.items(), strict=True):
        image = axis.imshow(grid, cmap="cividis", vmin=low, vmax=high, origin="lower")
        for (row, column), value in np.ndenumerate(grid):
            # White on the dark half, black on the other, and where there is nothing.
            shade = "white" if value <= (low + high) / 2 else "black"
            axis.text(column, row, show(value), ha="center", va="center", color=shade, size=8)
        axis.set_xticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
        axis.set_yticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
        axis.set_title(title)
        axis.set_ylabel(labels[0])
        axis.set_xlabel(labels[1])
    figure.colorbar(image, ax=list(axes), shrink=0.8)
    return figure


def bar_panels(panels: Mapping[str, Mapping[str, Mapping[str, float]]], y_label: str) -> Any:
    """Groups of bars: panel -> group -> what each bar is -> value. Their scale is logarithmic."""
    figure = new_figure((PANEL + 1) * len(panels), PANEL)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, groups) in zip(axes, panels.items(), strict=True):
        kinds = list(next(iter(groups.values()), {}))
        for index, kind in enumerate(kinds):
            places = np.arange(len(groups)) + (index - (len(kinds) - 1) / 2) * 0.38
            heights = [bars[kind] for bars in groups.values()]
            drawn = axis.bar(places, heights, 0.36, color=COLOURS[index], label=kind)
            axis.bar_label(drawn, fmt="{:.3g}", size=7)
        axis.set_xticks(range(len(groups)), list(groups), rotation=20)
        axis.set_title(title)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_ylabel(y_label)
        axis.legend(frameon=False)
    return figure


class Map(NamedTuple):
    """Instances in the plane, their classes, and which of these are new to the learner."""

    places: Floats  # (n, 2)
    classes: Array  # (n,) of str
    novel: Array  # (n,) of bool


def map_panels(rows: Mapping[str, Mapping[str, Map]], order: Sequence[str]) -> Any:
    """A grid of maps; a class has one colour everywhere, and a ring where it is new."""
    columns = list(dict.fromkeys(name for maps in rows.values() for name in maps))
    figure = new_figure(PANEL * 0.8 * len(columns) + 1.2, PANEL * 0.8 * len(rows))
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    styles = {name: style(index) for index, name in enumerate(order)}
    for line, (title, maps) in zip(axes, rows.items(), strict=True):
        for axis, column in zip(line, columns, strict=True):
            axis.set_xticks([])
            axis.set_yticks([])
            if column in maps:
                _draw_map(axis, maps[column], styles)
        line[0].set_ylabel(title)
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(column)
    if len(order) <= MOST_NAMED:
        handles = {
            text: handle
            for axis in axes.ravel()
            for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        named = [name for name in order if name in handles]
        figure.legend(
            [handles[name] for name in named], named, loc="outside right center", frameon=False,
            title="class (ring: new)", markerscale=2,
        )  # fmt: skip
    return figure


def _draw_map(axis: Any, drawn: Map, styles: Mapping[str, Style]) -> None:
    for name in sorted(set(drawn.classes.tolist())):
        rows = drawn.classes == name
        new = bool(drawn.novel[rows].any())
        colour, mark = styles[name]
        fill = {"facecolors": "none", "edgecolors": colour} if new else {"color": colour}
        axis.scatter(
            *drawn.places[rows].T, s=12 if new else 8, marker=mark, linewidths=0.8 if new else 0,
            label=name, zorder=3 if new else 2, **fill,
        )  # fmt: skip
