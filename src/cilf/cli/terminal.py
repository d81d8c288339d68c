"""What the command line shows: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cilf.core import WindowRecord
from cilf.core.notices import LOGGER
from cilf.core.progress import listening

COLUMNS = (
    "window", "true\nK", "found\nK", "NA", "Macro-F", "Micro-F", "AUROC",
    "hold-out\nold", "hold-out\nnew",
)  # fmt: skip
LEGEND = (
    "K: new classes in the window. NA: share put where it belongs, known and new counting half "
    "each. Hold-out: accuracy on instances never shown, of the first classes and of later ones."
)
UNDEFINED = "\N{EN DASH}"


def _stdout() -> Console:
    return Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    """Where a person who waits looks."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def message(text: str) -> None:
    """A line for the person who waits."""
    stderr().print(escape(text))


def problem(text: str) -> None:
    """The one line that says why nothing came of it."""
    stderr().print(f"[red]error:[/red] {escape(' '.join(text.split()))}")


def print_line(text: str) -> None:
    _stdout().print(escape(text))


@contextmanager
def aside() -> Iterator[None]:
    """What a learner of somebody's prints goes to standard error: the output is ours."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(document: Any) -> None:
    """One JSON document, with null where a number is undefined."""
    sys.stdout.write(json.dumps(_defined(document), indent=1, allow_nan=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows of text."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    Console(highlight=False).print(table)


def print_windows(records: Iterable[WindowRecord]) -> None:
    """One row for each window."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True,
        caption=LEGEND, caption_justify="left",
    )  # fmt: skip
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for record in records:
        table.add_row(*_window_row(record))
    Console(highlight=False).print(table)


def print_plan(rows: Iterable[tuple[str, str, str, str, str]]) -> None:
    """One row for each window of a stream, the initial training data first."""
    print_table(("window", "instances", "known", "new classes (instances)", "gone"), rows)


def _window_row(record: WindowRecord) -> list[str]:
    from cilf.evaluate.metrics import mean  # not at the top: it brings torch along

    new = mean(value for group, value in record.holdout_accuracy.items() if group > 0)
    found = str(record.n_novel_found)
    exact = record.n_novel_found == record.n_novel_true
    scores = (record.na, record.macro_f, record.micro_f, record.auroc)
    return [
        str(record.window),
        str(record.n_novel_true),
        f"[green]{found}[/green]" if exact else f"[yellow]{found}[/yellow]",
        *(number(score) for score in (*scores, record.holdout_accuracy.get(0, math.nan), new)),
    ]


def in_one_line(summary: Mapping[str, float]) -> str:
    """The means of a run, and how it ended."""
    n_windows = summary["n_windows"]
    parts = (
        f"mean NA {number(summary['na'])}",
        f"AUROC {number(summary['auroc'])}",
        f"K exact in {round(summary['k_exact'] * n_windows)} of {n_windows} windows",
        f"hold-out old {number(summary['holdout_first'])}, new {number(summary['holdout_new'])}",
        _labels(summary),
        f"{summary['seconds_detect'] + summary['seconds_update']:.1f} s",
    )
    return " · ".join(parts)


def _labels(summary: Mapping[str, float]) -> str:
    if not summary["n_propagated"]:
        return f"{summary['n_queried']} labels"
    right = number(summary["propagated_right"])
    return f"{summary['n_queried']} labels, {summary['n_propagated']} inferred ({right} right)"


def number(value: float) -> str:
    """
    >>> number(0.5), number(float("nan"))
    ('0.500', '–')
    """
    return UNDEFINED if math.isnan(value) else f"{value:.3f}"


class _Notices(logging.Handler):
    """Shows what the package has to say as lines for the person who waits."""

    def emit(self, record: logging.LogRecord) -> None:
        message(record.getMessage())


def show_notices() -> None:
    """Have notices of the package shown as messages, once each."""
    if not any(isinstance(handler, _Notices) for handler in LOGGER.handlers):
        LOGGER.addHandler(_Notices())
    LOGGER.propagate = False


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar for what is done right now, on a terminal."""
    bars = _bars()
    with bars, listening(_Stage(bars)):
        yield bars


@contextmanager
def progress_of(n_windows: int) -> Iterator[Watch]:
    """Bars while a run is on: its windows, and what it does right now."""
    bars = _bars()
    watch = Watch(bars, n_windows)
    with bars, listening(_Stage(bars)):
        yield watch


def _bars() -> Progress:
    console = stderr()
    return Progress(
        TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


class _Stage:
    """The bar of the stage that reports progress; gone as soon as the stage is done."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None, visible=False)

    def __call__(self, name: str, done: int, total: int) -> None:
        self._bars.update(
            self._task, description=name, completed=done, total=total, visible=done < total
        )


class Watch:
    """Follows a run: bars on a terminal, one line for each window elsewhere."""

    def __init__(self, bars: Progress, n_windows: int) -> None:
        self._bars = bars
        self._n_windows = n_windows
        self._windows = bars.add_task("windows", total=n_windows)

    def windows(self, records: Iterable[WindowRecord]) -> Iterator[WindowRecord]:
        """The same records, followed."""
        for record in records:
            self._bars.update(self._windows, completed=record.window)
            if self._bars.disable:
                message(
                    f"window {record.window} of {self._n_windows}: {record.n_novel_true} new "
                    f"classes, {record.n_novel_found} found, {record.n_queried} labels asked for"
                    f"{_unasked(record)}"
                )
            yield record


def _unasked(record: WindowRecord) -> str:
    return f", {record.n_propagated} inferred" if record.n_propagated else ""


def _defined(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _defined(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
