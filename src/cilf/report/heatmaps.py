"""The two heat maps of a run: which class comes when, and hold-out accuracy by window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cilf.report.class_style import ClassStyle
from cilf.report.run import Run
from cilf.report.tables import MISSING, format_cell


@dataclass(frozen=True)
class HeatmapCell:
    """A cell of a heat map: its state, its text, and what it means."""

    state: str
    text: str = ""
    meaning: str = ""
    strength: float = 0.0  # 0..1, how strongly it is coloured


_NOT_YET = HeatmapCell("ahead", "", "has not come yet")


@dataclass(frozen=True)
class StreamRow:
    """A class on the stream map."""

    name: str
    style: ClassStyle
    cells: list[HeatmapCell]  # the initial training data, then every planned window


@dataclass(frozen=True)
class AccuracyRow:
    """The classes that arrived together."""

    name: str
    classes: str
    cells: list[HeatmapCell]  # after each recorded window


def make_stream_heatmap(run: Run) -> list[StreamRow]:
    """Make a row for each class, in order of arrival."""
    most = max((n for window in run.planned for n in window.counts.values()), default=1)
    unlearned = [_find_unlearned(run, window) for window in range(1, len(run.planned) + 1)]
    return [_stream_row(run, name, most, unlearned) for name in run.classes]


def _stream_row(run: Run, name: str, most: int, unlearned: list[set[str]]) -> StreamRow:
    started = name in run.initial
    cells = [HeatmapCell("initial", "●", "labelled from the start") if started else _NOT_YET]
    for window, again in zip(run.planned, unlearned, strict=True):
        starts = name in window.novel
        started = started or starts
        cells.append(_stream_cell(window.counts.get(name, 0), most, starts, started, name in again))
    return StreamRow(name, run.styles[name], cells)


def _stream_cell(
    count: int, most: int, starts: bool, started: bool, unlearned: bool
) -> HeatmapCell:
    if starts:
        return HeatmapCell("novel", f"★ {count}", f"novel, {count} instances", count / most)
    if count and unlearned:
        meaning = f"{count} instances, still unknown to the learner"
        return HeatmapCell("unlearned", f"☆ {count}", meaning, count / most)
    if count:
        return HeatmapCell("present", str(count), f"known, {count} instances", count / most)
    if started:
        return HeatmapCell("gone", MISSING, "no instances in this window")
    return _NOT_YET


def _find_unlearned(run: Run, window: int) -> set[str]:
    """Find the classes of a window that came earlier and that the learner does not know."""
    snapshot = run.snapshot(window)
    if snapshot is None:
        return set()
    novel = {str(label) for label in np.unique(snapshot.truth[snapshot.novel]).tolist()}
    return novel - set(run.planned[window - 1].novel)


def make_accuracy_heatmap(run: Run) -> list[AccuracyRow]:
    """Make a row for the classes that arrived together, with a cell for each window."""
    groups = sorted({g for record in run.records for g in record.holdout_accuracy})
    return [_accuracy_row(run, group) for group in groups if run.group(group)]


def _accuracy_row(run: Run, group: int) -> AccuracyRow:
    name = "Initial classes" if group == 0 else f"Novel in window {group}"
    values = [record.holdout_accuracy.get(group) for record in run.records]
    return AccuracyRow(name, ", ".join(run.group(group)), [_accuracy_cell(v) for v in values])


def _accuracy_cell(value: float | None) -> HeatmapCell:
    if value is None:
        return HeatmapCell("ahead", "", "not here yet")
    if math.isnan(value):
        return HeatmapCell("ahead", format_cell(value), "not measured")
    return HeatmapCell("score", f"{value:.2f}", f"{100 * value:.1f} % right", value)
