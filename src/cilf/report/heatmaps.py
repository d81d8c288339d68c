"""The two grids of a run: which class came when, and what is remembered after each window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cilf.report.class_style import ClassStyle
from cilf.report.run import Run
from cilf.report.tables import MISSING, format_cell


@dataclass(frozen=True)
class HeatmapCell:
    """A cell of a grid: how it looks, what it says, what it means in words."""

    state: str
    text: str = ""
    meaning: str = ""
    strength: float = 0.0  # 0..1, how strongly it is coloured


_AHEAD = HeatmapCell("ahead", "", "has not come yet")


@dataclass(frozen=True)
class StreamRow:
    """A class on the stream map."""

    name: str
    style: ClassStyle
    cells: list[HeatmapCell]  # the initial training data, then every planned window


@dataclass(frozen=True)
class AccuracyRow:
    """A group of classes that arrived together."""

    name: str
    classes: str
    cells: list[HeatmapCell]  # after each recorded window


def make_stream_heatmap(run: Run) -> list[StreamRow]:
    """A row per class, in order of arrival."""
    most = max((n for window in run.planned for n in window.counts.values()), default=1)
    untold = [_untold(run, window) for window in range(1, len(run.planned) + 1)]
    return [_stream_row(run, name, most, untold) for name in run.classes]


def _stream_row(run: Run, name: str, most: int, untold: list[set[str]]) -> StreamRow:
    started = name in run.initial
    cells = [HeatmapCell("initial", "●", "labelled from the start") if started else _AHEAD]
    for window, again in zip(run.planned, untold, strict=True):
        starts = name in window.novel
        started = started or starts
        cells.append(_stream_cell(window.counts.get(name, 0), most, starts, started, name in again))
    return StreamRow(name, run.styles[name], cells)


def _stream_cell(count: int, most: int, starts: bool, started: bool, untold: bool) -> HeatmapCell:
    if starts:
        return HeatmapCell("novel", f"★ {count}", f"new here, {count} instances", count / most)
    if count and untold:
        meaning = f"{count} instances, still unknown to the learner"
        return HeatmapCell("untold", f"☆ {count}", meaning, count / most)
    if count:
        return HeatmapCell("present", str(count), f"known, {count} instances", count / most)
    if started:
        return HeatmapCell("gone", MISSING, "no instances in this window")
    return _AHEAD


def _untold(run: Run, window: int) -> set[str]:
    """The classes of a window that came earlier but that the learner was never told about."""
    drawing = run.drawing(window)
    if drawing is None:
        return set()
    novel = {str(label) for label in np.unique(drawing.truth[drawing.novel]).tolist()}
    return novel - set(run.planned[window - 1].novel)


def make_accuracy_heatmap(run: Run) -> list[AccuracyRow]:
    """A row per group of classes that arrived together, a column per recorded window."""
    groups = sorted({g for record in run.records for g in record.holdout_accuracy})
    return [_accuracy_row(run, group) for group in groups if run.group(group)]


def _accuracy_row(run: Run, group: int) -> AccuracyRow:
    name = "First classes" if group == 0 else f"New in window {group}"
    values = [record.holdout_accuracy.get(group) for record in run.records]
    return AccuracyRow(name, ", ".join(run.group(group)), [_accuracy_cell(v) for v in values])


def _accuracy_cell(value: float | None) -> HeatmapCell:
    if value is None:
        return HeatmapCell("ahead", "", "not here yet")
    if math.isnan(value):
        return HeatmapCell("ahead", format_cell(value), "not measured")
    return HeatmapCell("score", f"{value:.2f}", f"{100 * value:.1f} % right", value)
