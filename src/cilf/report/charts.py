"""The charts of a run, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cilf.core import WindowRecord
from cilf.evaluate.metric_table import shown_in
from cilf.report.svg import Svg, element, group, image, label, line

LEFT, RIGHT = 34.0, 14.0  # room for the numbers at the axis, and for half a number at the end


@dataclass(frozen=True)
class _Frame:
    """The layout of a chart of values per window."""

    n: int  # windows
    width: float
    top: float
    bottom: float
    most: float  # the value at the top; 0 is at the bottom

    def x(self, window: int) -> float:
        """The middle of a window's column, the first being 0."""
        return LEFT + (self.width - LEFT - RIGHT) * (window + 0.5) / self.n

    def y(self, value: float) -> float:
        return self.bottom + (self.top - self.bottom) * value / self.most

    def tick(self, value: float) -> Svg:
        y = self.y(value)
        return group(
            line(LEFT, y, self.width, y, class_="rule"),
            label(f"{value:g}", LEFT - 8, y + 4, text_anchor="end", class_="tick"),
        )

    def label_below(self, text: str, window: int) -> Svg:
        return label(text, self.x(window), self.bottom + 19)

    def image(self, *children: str, title: str) -> Svg:
        return image(*children, width=self.width, height=self.bottom + 28, title=title)


def plot_counts(records: Sequence[WindowRecord]) -> Svg:
    """Plot the true and the found number of novel classes of each window as bars."""
    most = max([1, *(max(r.n_novel_planned, r.n_novel_found or 0) for r in records)])
    width = max(420.0, LEFT + RIGHT + 92.0 * len(records))
    frame = _Frame(len(records), width, top=46, bottom=216, most=most)
    axis = [frame.tick(value) for value in range(0, most + 1, math.ceil(most / 5))]
    pairs = [_pair(record, i, frame) for i, record in enumerate(records)]
    text = "; ".join(_describe_counts(record) for record in records)
    return frame.image(*axis, *pairs, title=f"Number of novel classes per window. {text}")


def _describe_counts(record: WindowRecord) -> str:
    return f"Window {record.window}: {record.n_novel_planned} true, {record.n_novel_found} found"


def _pair(record: WindowRecord, i: int, frame: _Frame) -> Svg:
    true, found, x = record.n_novel_planned, record.n_novel_found or 0, frame.x(i)
    exact = found == true
    return group(
        element("title", _describe_counts(record)),
        _bar(x - 25, true, frame, "bar true"),
        _bar(x + 3, found, frame, "bar found"),
        label("✓ exact" if exact else format_signed(found - true), x, 16,
              class_="verdict good" if exact else "verdict off"),
        frame.label_below(f"window {record.window}", i),
    )  # fmt: skip


def _bar(x: float, value: int, frame: _Frame, class_: str) -> Svg:
    # A bar of height 0 is a line, so that "none found" is visible.
    top = min(frame.y(value), frame.bottom - 2)
    bar = element("rect", class_=class_, x=x, y=top, width=22, height=frame.bottom - top, rx=3)
    return group(bar, label(str(value), x + 11, top - 5, class_="value"))


def format_signed(number: int) -> str:
    """Format a difference with its sign.

    >>> format_signed(2), ascii(format_signed(-1))
    ('+2', "'\\\\u22121'")
    """
    return f"{number:+d}".replace("-", "\N{MINUS SIGN}")


def plot_metrics(records: Sequence[WindowRecord]) -> list[dict[str, str]]:
    """Plot a small chart of each metric, with its title and meaning."""
    return [
        {
            "title": metric.title,
            "meaning": metric.meaning,
            "chart": plot_metric(records, name, metric.title),
        }
        for name, metric in shown_in("charts").items()
    ]


def plot_metric(records: Sequence[WindowRecord], name: str, title: str) -> Svg:
    """Plot a metric over the windows; where it is undefined the line has a gap."""
    values = [record.metric(name) for record in records]
    width = max(260.0, LEFT + RIGHT + 44.0 * len(records))
    frame = _Frame(len(records), width, top=22, bottom=132, most=1)
    axis = [frame.tick(value) for value in (0, 0.5, 1)]
    windows = [frame.label_below(str(record.window), i) for i, record in enumerate(records)]
    lines = [_line(places, values, frame) for places in _split_at_gaps(values)]
    texts = [f"Window {r.window}: {_describe(v)}" for r, v in zip(records, values, strict=True)]
    dots = [_dot(i, values, f"{title}, {text}", frame) for i, text in enumerate(texts)]
    return frame.image(*axis, *windows, *lines, *dots, title=f"{title}. {'; '.join(texts)}")


def _line(places: list[int], values: list[float], frame: _Frame) -> Svg:
    path = "L".join(f"{frame.x(i):.1f} {frame.y(values[i]):.1f}" for i in places)
    return element("path", class_="line", d=f"M{path}")


def _dot(i: int, values: list[float], hover: str, frame: _Frame) -> Svg:
    x, value = frame.x(i), values[i]
    if math.isnan(value):
        return group(element("title", hover), label("n/a", x, frame.y(0.5) + 4, class_="gap"))
    y = frame.y(value)
    return group(
        element("title", hover),
        element("circle", class_="dot", cx=x, cy=y, r=4),
        label(_format_short(value), x, y + (18 if _dips(values, i) else -9), class_="value"),
    )


def _dips(values: list[float], i: int) -> bool:
    """Whether the line comes from above, so that the number fits below it (if there is room)."""
    near = [v for v in (*values[max(0, i - 1) : i], *values[i + 1 : i + 2]) if not math.isnan(v)]
    return bool(near) and values[i] > 0.2 and all(v > values[i] for v in near)


def _split_at_gaps(values: list[float]) -> list[list[int]]:
    """Split the places of the values into runs of two or more that a line can join.

    >>> _split_at_gaps([1.0, math.nan, 0.5, 0.6, 0.7, math.nan])
    [[2, 3, 4]]
    """
    runs: list[list[int]] = [[]]
    for i, value in enumerate(values):
        if math.isnan(value):
            runs.append([])
        else:
            runs[-1].append(i)
    return [run for run in runs if len(run) > 1]


def _format_short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def _describe(value: float) -> str:
    return "not defined" if math.isnan(value) else f"{value:.3f}"
