"""Panels of the paper's figures; the numbers they plot are written beside them as CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cilf.core.files import make_folder, replace_file
from cilf.core.types import Array, Floats
from cilf.report.figures import new_figure, write_figure
from cilf.report.tables import Table, format_cell

# After Okabe and Ito: people with any colour vision tell them apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
OURS = "cilf"  # plotted on top, in black
PANEL = 3.2  # inches
MAX_LEGEND = 12  # classes


class Style(NamedTuple):
    """The colour and the marker of one of several things."""

    colour: str
    marker: str


def choose_style(index: int) -> Style:
    """Return a style: the first eight differ in colour, the next eight in their marker too."""
    return Style(COLOURS[index % len(COLOURS)], MARKERS[index // len(COLOURS) % len(MARKERS)])


def write_files(figure: Any, rows: Table, out: Path, name: str) -> list[Path]:
    """Write ``name.png``, ``name.svg`` and the plotted numbers as ``name.csv``."""
    make_folder(out)
    replace_file(out / f"{name}.csv", rows.to_csv().encode())
    return [*write_images(figure, out, name), out / f"{name}.csv"]


def write_images(figure: Any, out: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg``."""
    return [write_figure(figure, out / f"{name}{suffix}") for suffix in (".png", ".svg")]


class Series(NamedTuple):
    """One line: values over x, and their deviation over seeds."""

    x: Sequence[float]
    y: Sequence[float]
    std: Sequence[float]


def plot_lines(
    panels: Mapping[str, Mapping[str, Series]], x_label: str, *, percent: bool = False
) -> Any:
    """Plot a panel for each metric and a line for each learner, with one legend."""
    figure = new_figure(PANEL * len(panels) + 1.6, PANEL)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for index, (name, line) in enumerate(lines.items()):
            _plot_line(axis, name, line, choose_style(index))
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


def _plot_line(axis: Any, name: str, line: Series, style: Style) -> None:
    ours = name == OURS
    colour, width = ("black", 2.2) if ours else (style.colour, 1.2)
    axis.plot(
        line.x, line.y, color=colour, lw=width, marker=style.marker, ms=4, label=name,
        zorder=3 if ours else 2,
    )  # fmt: skip
    low, high = np.subtract(line.y, line.std), np.add(line.y, line.std)
    axis.fill_between(line.x, low, high, color=colour, alpha=0.12, lw=0)


def plot_heatmaps(
    panels: Mapping[str, Array], ticks: Sequence[float], labels: tuple[str, str]
) -> Any:
    """Plot a matrix in each panel: rows by the first label, columns by the second."""
    figure = new_figure((PANEL + 0.4) * len(panels) + 1, PANEL + 0.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    values = np.concatenate([grid.ravel() for grid in panels.values()])
    low, high = np.nanmin(values), np.nanmax(values)
    for axis, (title, grid) in zip(axes, panels.items(), strict=True):
        image = axis.imshow(grid, cmap="cividis", vmin=low, vmax=high, origin="lower")
        for (row, column), value in np.ndenumerate(grid):
            # White on the dark half, black on the other, and where there is nothing.
            shade = "white" if value <= (low + high) / 2 else "black"
            axis.text(
                column, row, format_cell(value), ha="center", va="center", color=shade, size=8
            )
        axis.set_xticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
        axis.set_yticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
        axis.set_title(title)
        axis.set_ylabel(labels[0])
        axis.set_xlabel(labels[1])
    figure.colorbar(image, ax=list(axes), shrink=0.8)
    return figure


def plot_bars(panels: Mapping[str, Mapping[str, Mapping[str, float]]], y_label: str) -> Any:
    """Plot groups of bars on a logarithmic scale: panel -> group -> name of the bar -> value."""
    figure = new_figure((PANEL + 1) * len(panels), PANEL)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, groups) in zip(axes, panels.items(), strict=True):
        names = list(next(iter(groups.values()), {}))
        for index, name in enumerate(names):
            places = np.arange(len(groups)) + (index - (len(names) - 1) / 2) * 0.38
            heights = [bars[name] for bars in groups.values()]
            container = axis.bar(places, heights, 0.36, color=COLOURS[index], label=name)
            axis.bar_label(container, fmt="{:.3g}", size=7)
        axis.set_xticks(range(len(groups)), list(groups), rotation=20)
        axis.set_title(title)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_ylabel(y_label)
        axis.legend(frameon=False)
    return figure


class RankLine(NamedTuple):
    """Mean ranks on a line, and the groups of names that do not differ."""

    ranks: Mapping[str, float]  # by name, the best first
    groups: Sequence[Sequence[str]]
    critical: float  # difference of ranks; NaN if none was computed


def plot_ranks(panels: Mapping[str, RankLine]) -> Any:
    """Plot mean ranks on a line, and a bar for each group of names that do not differ."""
    tall = max(len(line.ranks) for line in panels.values())
    figure = new_figure(7.0, (0.16 * tall + 1.3) * len(panels))
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (title, line) in zip(axes, panels.items(), strict=True):
        _plot_ranks(axis, line)
        critical = "" if math.isnan(line.critical) else f"; critical difference {line.critical:.2f}"
        axis.set_title(f"mean rank by {title}{critical}", pad=18)
    return figure


def _plot_ranks(axis: Any, line: RankLine) -> None:
    """Plot the better half of the names to the left, the other to the right, as is usual."""
    n, names = len(line.ranks), list(line.ranks)
    top, gap = 0.0, 1.0
    low = top - gap * (len(line.groups) + (n + 1) // 2 + 1)
    axis.set_xlim(1 - 0.45 * n, n + 0.45 * n)
    axis.set_ylim(low, top + gap)
    axis.hlines(top, 1, n, color="black", lw=1)
    for tick in range(1, n + 1):
        axis.vlines(tick, top, top + 0.25, color="black", lw=1)
        axis.text(tick, top + 0.4, str(tick), ha="center", va="bottom", size=8)
    for place, group in enumerate(line.groups):
        ends = (line.ranks[group[0]] - 0.05, line.ranks[group[-1]] + 0.05)
        axis.hlines(top - 0.5 - 0.6 * place, *ends, color=COLOURS[0], lw=3)
    for index, name in enumerate(names):
        left = index < (n + 1) // 2
        row = index if left else n - 1 - index
        height = top - 0.6 * len(line.groups) - gap * (row + 1)
        edge, side = (0.7, "right") if left else (n + 0.3, "left")
        rank, ours = line.ranks[name], name == OURS
        colour = "black" if ours else "#555555"
        axis.plot([rank, rank, edge], [top, height, height], color=colour, lw=1.6 if ours else 0.7)
        axis.text(
            edge + (-0.1 if left else 0.1), height, f"{name} {rank:.2f}", ha=side, va="center",
            size=8, weight="bold" if ours else "normal",
        )  # fmt: skip
    axis.axis("off")


class Map(NamedTuple):
    """Instances in the plane, their classes, and which of these are new to the learner."""

    places: Floats  # (n, 2)
    classes: Array  # (n,) of str
    novel: Array  # (n,) of bool


def plot_maps(rows: Mapping[str, Mapping[str, Map]], order: Sequence[str]) -> Any:
    """Plot a matrix of maps; a class has one colour everywhere, and rings where it is new."""
    columns = list(dict.fromkeys(name for maps in rows.values() for name in maps))
    figure = new_figure(PANEL * 0.8 * len(columns) + 1.2, PANEL * 0.8 * len(rows))
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    styles = {name: choose_style(index) for index, name in enumerate(order)}
    for line, (title, maps) in zip(axes, rows.items(), strict=True):
        for axis, column in zip(line, columns, strict=True):
            axis.set_xticks([])
            axis.set_yticks([])
            if column in maps:
                _plot_map(axis, maps[column], styles)
        line[0].set_ylabel(title)
    for axis, column in zip(axes[0], columns, strict=True):
        axis.set_title(column)
    if len(order) <= MAX_LEGEND:
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


def _plot_map(axis: Any, map_: Map, styles: Mapping[str, Style]) -> None:
    for name in sorted(set(map_.classes.tolist())):
        rows = map_.classes == name
        new = bool(map_.novel[rows].any())
        colour, marker = styles[name]
        fill = {"facecolors": "none", "edgecolors": colour} if new else {"color": colour}
        axis.scatter(
            *map_.places[rows].T, s=12 if new else 8, marker=marker, linewidths=0.8 if new else 0,
            label=name, zorder=3 if new else 2, **fill,
        )  # fmt: skip
