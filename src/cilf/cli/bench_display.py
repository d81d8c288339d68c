"""The progress and the results of a benchmark: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cilf.cli.terminal import format_number, open_stderr, print_line, print_message, print_table

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench, State
    from cilf.benchmark.engines import Engine, Event
    from cilf.benchmark.results import Means

REFRESH_RATE = 2  # per second
MAX_ROWS = 12  # running cells in the table; the others are counted
MAX_MESSAGES = 5  # below the table
NOT_FORECAST = (
    "Clustering, GANs and the sharing of a core or GPU are not included. "
    "Learners without a network are assumed to need what the others need."
)


def format_duration(seconds: float | None) -> str:
    """
    >>> format_duration(8.4), format_duration(75), format_duration(7300), format_duration(None)
    ('8 s', '1 min 15 s', '2 h 1 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def announce_bench(bench: Bench, engine: Engine) -> None:
    """Print how many cells there are and how long they will take."""
    for line in describe_work(bench, engine):
        print_message(line)


def describe_work(bench: Bench, engine: Engine) -> Iterator[str]:
    """Describe how many cells there are, how long they will take, and how that is known."""
    done, left = bench.count("done"), bench.count("waiting")
    parts = [f"{len(bench.states)} cells, {done} of them done already"]
    if left:
        at_once = min(left, engine.n_slots)
        seconds = _format_seconds_left(bench, engine)
        parts.append(f"{left} to run, {at_once} at once, expected time {seconds}")
    yield "; ".join(parts)
    speeds = bench.run_time.speeds
    if left and speeds:
        measured = "; ".join(speed.describe() for speed in speeds)
        yield f"the time is forecast from the speed of training here ({measured}). {NOT_FORECAST}"


def work_to_json(bench: Bench, engine: Engine) -> dict[str, Any]:
    """The same for programs."""
    left = bench.count("waiting")
    return {
        "out": str(bench.out),
        "n_cells": len(bench.states),
        "n_done": bench.count("done"),
        "n_to_run": left,
        "n_at_once": min(left, engine.n_slots),
        "expected_seconds": bench.seconds_left(engine.n_slots),
        "speeds": [speed.to_json() for speed in bench.run_time.speeds],
    }


@contextmanager
def follow_bench(bench: Bench, engine: Engine) -> Iterator[BenchDisplay]:
    """Show the progress of the cells while they run."""
    console = open_stderr()
    display = BenchDisplay(bench, engine, live=console.is_terminal)
    if not console.is_terminal:
        yield display
        return
    with Live(
        get_renderable=display.make_table,
        console=console,
        refresh_per_second=REFRESH_RATE,
        transient=True,
    ):
        yield display


class BenchDisplay:
    """Shows the events of a benchmark."""

    def __init__(self, bench: Bench, engine: Engine, *, live: bool) -> None:
        self._bench, self._engine, self._live = bench, engine, live
        self._messages: deque[str] = deque(maxlen=MAX_MESSAGES)

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events and show them."""
        from cilf.benchmark.engines import Ended, Lost

        for event in events:
            state = self._bench.states[event.job.folder.name]
            if isinstance(event, Lost):
                self._show(f"{state.name}: {event.why}; another worker continues it")
            elif isinstance(event, Ended) and state.error:
                self._show(f"{state.name} failed: {state.error}")
            elif isinstance(event, Ended) and not self._live:
                seconds = format_duration(state.seconds)
                print_message(f"{self._format_counts()}: {state.name} took {seconds}")
            yield event

    def _show(self, text: str) -> None:
        """Show a message below the table, or as a line."""
        if self._live:
            self._messages.append(text)
        else:
            print_message(text)

    def make_table(self) -> Group:
        """Make a table with the counts and a row for each running cell."""
        running = self._bench.with_status("running")
        rows = Table.grid(padding=(0, 2))
        for state in running[:MAX_ROWS]:
            rows.add_row(*_running_row(state))
        n_more = len(running) - MAX_ROWS
        more = [f"and {n_more} more"] if n_more > 0 else []
        return Group(Text(self._format_counts()), rows, *map(Text, [*more, *self._messages]))

    def _format_counts(self) -> str:
        bench = self._bench
        parts = [
            f"{bench.count('done')} of {len(bench.states)} cells done",
            f"{bench.count('running')} running",
            f"{bench.count('failed')} failed",
            f"time left {_format_seconds_left(bench, self._engine)}",
        ]
        return ", ".join(parts)


def _format_seconds_left(bench: Bench, engine: Engine) -> str:
    seconds = bench.seconds_left(engine.n_slots)
    return format_duration(None) if seconds is None else f"about {format_duration(seconds)}"


def _running_row(state: State) -> tuple[str, str, str]:
    done, planned = state.windows()
    windows = f"window {min(done + 1, planned)} of {planned}" if planned else "starting"
    return escape(state.name), windows, format_duration(time.monotonic() - state.since)


def print_results(bench: Bench) -> None:
    """Print means over seeds, with a row for each setting, in the order of H for the same data.

    Settings that agree are printed once.
    """
    from cilf.benchmark.results import means
    from cilf.evaluate.metric_table import rank_by_h, shown_in

    found = means(bench.with_status("done"))
    if not found:
        return
    streams = [(row.data, row.scenario) for row in found]
    found.sort(key=lambda r: (streams.index((r.data, r.scenario)), *rank_by_h(r.summary)))
    common = set.intersection(*(set(row.changed) for row in found))
    names = {
        "learner": [row.learner for row in found],
        "data": [row.data for row in found],
        "scenario": [row.scenario for row in found],
        "changed": [" ".join(c for c in row.changed if c not in common) for row in found],
    }
    differing = {name: column for name, column in names.items() if len(set(column)) > 1}
    differing = differing or {"learner": names["learner"]}
    same = [column[0] for name, column in names.items() if name not in differing]
    print_line(" ".join([*filter(None, same), *sorted(common)]))
    shown = {
        name: metric
        for name, metric in shown_in("bench").items()
        if any(name in row.summary for row in found)
    }
    scores = [_scores(row, shown) for row in found]
    rows = [(*texts, *row) for *texts, row in zip(*differing.values(), scores, strict=True)]
    print_table((*differing, "seeds", *(m.title for m in shown.values()), "seconds"), rows)
    for row in found:
        if row.over_joint.is_clear():
            print_line(_describe_above_joint(row))


def _describe_above_joint(row: Means) -> str:
    where = " ".join([row.learner, "on", row.data, row.scenario, *row.changed])
    return f"{where} ends above joint on all classes by {row.over_joint.format()}."


def _scores(row: Means, names: Iterable[str]) -> tuple[str, ...]:
    values = (format_number(row.summary.get(name, math.nan)) for name in names)
    return str(row.n_seeds), *values, f"{row.summary['seconds']:.1f}"
