"""What a person sees while a benchmark runs: a live table, or lines where there is no terminal."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cilf.cli.terminal import message, number, print_line, print_table, stderr

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench, State
    from cilf.benchmark.engines import Engine, Event
    from cilf.benchmark.results import Means

REDRAWN = 2  # times a second
MOST_SHOWN = 12  # running cells; the others are counted
MOST_SAID = 5  # lines below the table


def duration(seconds: float | None) -> str:
    """
    >>> duration(8.4), duration(75), duration(7300), duration(None)
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


def announce(bench: Bench, engine: Engine) -> None:
    """What is to come."""
    done, left = bench.count("done"), bench.count("waiting")
    parts = [f"{len(bench.states)} cells, {done} of them done already"]
    if left:
        at_once = min(left, engine.n_slots)
        time_left = _left(bench, engine)
        parts.append(f"{left} to run, {at_once} at once, expected time {time_left}")
    message("; ".join(parts))


@contextmanager
def following(bench: Bench, engine: Engine) -> Iterator[BenchWatch]:
    """Show where the cells are while they run."""
    console = stderr()
    watch = BenchWatch(bench, engine, live=console.is_terminal)
    if not console.is_terminal:
        yield watch
        return
    with Live(
        get_renderable=watch.table, console=console, refresh_per_second=REDRAWN, transient=True
    ):
        yield watch


class BenchWatch:
    """Follows the events of a benchmark."""

    def __init__(self, bench: Bench, engine: Engine, *, live: bool) -> None:
        self._bench, self._engine, self._live = bench, engine, live
        self._said: deque[str] = deque(maxlen=MOST_SAID)

    def events(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, followed."""
        from cilf.benchmark.engines import Ended, Lost

        for event in events:
            state = self._bench.states[event.job.folder.name]
            if isinstance(event, Lost):
                self._say(f"{state.name}: {event.why}; it goes on in another")
            elif isinstance(event, Ended) and state.error:
                self._say(f"{state.name} failed: {state.error}")
            elif isinstance(event, Ended) and not self._live:
                message(f"{self._counts()}: {state.name} took {duration(state.seconds)}")
            yield event

    def _say(self, text: str) -> None:
        """Below the table, or as a line."""
        if self._live:
            self._said.append(text)
        else:
            message(text)

    def table(self) -> Group:
        """The counts, and a row for each cell that runs."""
        running = self._bench.with_status("running")
        rows = Table.grid(padding=(0, 2))
        for state in running[:MOST_SHOWN]:
            rows.add_row(*_running_row(state))
        unseen = len(running) - MOST_SHOWN
        rest = [f"and {unseen} more"] if unseen > 0 else []
        return Group(Text(self._counts()), rows, *map(Text, [*rest, *self._said]))

    def _counts(self) -> str:
        bench = self._bench
        parts = [
            f"{bench.count('done')} of {len(bench.states)} cells done",
            f"{bench.count('running')} running",
            f"{bench.count('failed')} failed",
            f"time left {_left(bench, self._engine)}",
        ]
        return ", ".join(parts)


def _left(bench: Bench, engine: Engine) -> str:
    seconds = bench.seconds_left(engine.n_slots)
    return duration(seconds) if seconds is None else f"about {duration(seconds)}"


def _running_row(state: State) -> tuple[str, str, str]:
    done, planned = state.windows()
    windows = f"window {min(done + 1, planned)} of {planned}" if planned else "starting"
    return escape(state.name), windows, duration(time.monotonic() - state.since)


def print_results(bench: Bench) -> None:
    """A row for each kind of cell: means over the seeds that are done."""
    from cilf.benchmark.results import means
    from cilf.evaluate.metric_table import shown_in

    found = means(bench.with_status("done"))
    if not found:
        return
    common = set.intersection(*(set(row.changed) for row in found))
    names = {
        "learner": [row.learner for row in found],
        "data": [row.data for row in found],
        "scenario": [row.scenario for row in found],
        "changed": [" ".join(c for c in row.changed if c not in common) for row in found],
    }
    told = {name: column for name, column in names.items() if len(set(column)) > 1}
    told = told or {"learner": names["learner"]}
    same = [column[0] for name, column in names.items() if name not in told]
    print_line(" ".join([*filter(None, same), *sorted(common)]))
    shown = {
        name: metric
        for name, metric in shown_in("bench").items()
        if any(name in row.summary for row in found)
    }
    scores = [_scores(row, shown) for row in found]
    rows = [(*texts, *row) for *texts, row in zip(*told.values(), scores, strict=True)]
    print_table((*told, "seeds", *(m.title for m in shown.values()), "seconds"), rows)


def _scores(row: Means, names: Iterable[str]) -> tuple[str, ...]:
    values = (number(row.summary.get(name, math.nan)) for name in names)
    return str(row.n_seeds), *values, f"{row.summary['seconds']:.1f}"
