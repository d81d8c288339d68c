"""Terminal output: results on standard output, messages and progress on standard error."""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cilf.core import WindowRecord
from cilf.core.deprecation import OldName
from cilf.core.notices import LOGGER
from cilf.core.progress import FEATURES, listen

UNDEFINED = "\N{EN DASH}"


def _stdout() -> Console:
    return Console(highlight=False, soft_wrap=True)


def open_stderr() -> Console:
    """Open the console for messages and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def show_controls(text: str) -> str:
    r"""Text with control characters as escapes, since a terminal would obey them.

    >>> show_controls("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def print_message(text: str) -> None:
    """Print a line on standard error."""
    open_stderr().print(escape(show_controls(text)))


def print_error(text: str) -> None:
    """Print an error as one line on standard error."""
    open_stderr().print(f"[red]error:[/red] {escape(show_controls(' '.join(text.split())))}")


def print_line(text: str) -> None:
    """Print a line of the result."""
    _stdout().print(escape(show_controls(text)))


def print_csv(content: bytes) -> None:
    """Print a table as it is; on a terminal with its control characters as escapes."""
    text = content.decode().replace("\r\n", "\n")
    sys.stdout.write(show_controls(text) if sys.stdout.isatty() else text)


@contextmanager
def redirect_prints() -> Iterator[None]:
    """Send what a user's learner prints to standard error: standard output holds the result."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(document: Any) -> None:
    """Print one JSON document; an undefined number is null."""
    sys.stdout.write(json.dumps(_replace_nan(document), indent=1, allow_nan=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows of text under column heads."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for row in rows:
        table.add_row(*(escape(show_controls(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_windows(records: Sequence[WindowRecord]) -> None:
    """Print a row of metrics for each window, and what the metrics mean."""
    from cilf.evaluate.metric_table import shown_for, value_after

    shown = shown_for("windows", records)
    meanings = [f"{metric.title}: {metric.meaning}" for metric in shown.values()]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True,
        caption=" ".join(["K: Number of novel classes.", *meanings]), caption_justify="left",
    )  # fmt: skip
    for title in ("window", "true K", "found K", *(metric.title for metric in shown.values())):
        table.add_column(title.replace(" ", "\n"), justify="right")
    for record in records:
        found = UNDEFINED if record.n_novel_found is None else str(record.n_novel_found)
        colour = "green" if record.n_novel_found == record.n_novel_planned else "yellow"
        table.add_row(
            str(record.window),
            str(record.n_novel_planned),
            f"[{colour}]{found}[/{colour}]",
            *(format_number(value_after(name, record)) for name in shown),
        )
    Console(highlight=False).print(table)


def format_summary(summary: Mapping[str, float]) -> str:
    """Format the summary of a run as one line."""
    from cilf.evaluate.metric_table import shown_in

    metrics = [
        f"{metric.title} {format_number(summary[name])}"
        for name, metric in shown_in("bench").items()
        if name in summary and not math.isnan(summary[name])
    ]
    return " · ".join([*metrics, _format_labels(summary), f"{summary['seconds']:.1f} s"])


def _format_labels(summary: Mapping[str, float]) -> str:
    queried = f"{summary['n_queried']} labels queried"
    if not summary["n_propagated"]:
        return queried
    right = format_number(summary["propagated_right"])
    return f"{queried}, {summary['n_propagated']} propagated ({right} right)"


def format_number(value: float) -> str:
    """
    >>> format_number(0.5), format_number(float("nan"))
    ('0.500', '–')
    """
    return UNDEFINED if math.isnan(value) else f"{value:.3f}"


class _NoticeHandler(logging.Handler):
    """Prints the notices of the package as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        print_message(record.getMessage())


def show_notices() -> None:
    """Print the notices of the package as messages from now on."""
    if not any(isinstance(handler, _NoticeHandler) for handler in LOGGER.handlers):
        LOGGER.addHandler(_NoticeHandler())
    LOGGER.propagate = False


@contextmanager
def show_old_names() -> Iterator[None]:
    """Print the warnings about old names as messages, within a block."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", OldName)
        show = warnings.showwarning

        def show_message(
            message: Warning | str, category: type[Warning], *place: Any, **named: Any
        ) -> None:
            if issubclass(category, OldName):
                print_message(str(message))
            else:
                show(message, category, *place, **named)

        warnings.showwarning = show_message
        yield


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show a bar for the current stage, if standard error is a terminal."""
    bars = _make_bars()
    with bars, listen(_StageBar(bars)):
        yield bars


@contextmanager
def show_window_progress(n_windows: int) -> Iterator[WindowProgress]:
    """Show a bar for the windows of a run, and one for the current stage."""
    bars = _make_bars()
    windows = WindowProgress(bars, n_windows)
    with bars, listen(_StageBar(bars)):
        yield windows


def _make_bars() -> Progress:
    console = open_stderr()
    return Progress(
        TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(),
        _RateColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


class _RateColumn(ProgressColumn):
    """The instances per second that a frozen network takes."""

    def render(self, task: Task) -> Text:
        is_shown = task.description.endswith(FEATURES) and task.speed
        return Text(f"{task.speed:.0f}/s" if is_shown else "")


class _StageBar:
    """The bar of the current stage; it disappears when the stage ends."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None, visible=False)
        self._name = ""

    def __call__(self, name: str, done: int, total: int) -> None:
        if name != self._name:  # the rate and the time left are those of one stage
            self._bars.reset(self._task, total=total)
            self._name = name
        self._bars.update(
            self._task, description=name, completed=done, total=total, visible=done < total
        )


class WindowProgress:
    """The progress of a run: a bar on a terminal, one line for each window elsewhere."""

    def __init__(self, bars: Progress, n_windows: int) -> None:
        self._bars = bars
        self._n_windows = n_windows
        self._windows = bars.add_task("windows", total=n_windows)

    def follow(self, records: Iterable[WindowRecord]) -> Iterator[WindowRecord]:
        """Yield the records and show the progress."""
        for record in records:
            self._bars.update(self._windows, completed=record.window)
            if self._bars.disable:
                print_message(self._format(record))
            yield record

    def _format(self, record: WindowRecord) -> str:
        propagated = f", {record.n_propagated} propagated" if record.n_propagated else ""
        return (
            f"window {record.window} of {self._n_windows}: {record.n_novel_planned} novel classes, "
            f"{_describe_found(record)}, {record.n_queried} labels queried{propagated}"
        )


def _describe_found(record: WindowRecord) -> str:
    return "given" if record.n_novel_found is None else f"{record.n_novel_found} found"


def _replace_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _replace_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
