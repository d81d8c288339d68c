"""The tables of a report: one row for each window of a run, or for each of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cilf.core import WindowRecord
from cilf.evaluate.metric_table import rank_by_h, shown_for, shown_in, value_after
from cilf.evaluate.summary import summarize
from cilf.report.run import Run
from cilf.report.tables import Cell, Table, format_cell

WINDOW_HEAD = ("window", "true K", "found K")
PROPAGATED = ("propagated", "of these right")  # columns of runs that propagate answers
RUN_HEAD = ("learner", "changes", "data", "scenario", "scale", "protocol", "seed")
TOTALS = ("queried", "seconds")


def make_window_table(run: Run) -> Table:
    """Make a table with a row for each window."""
    propagated = any(record.n_propagated for record in run.records)
    shown = shown_for("windows", run.records)
    titles = [metric.title for metric in shown.values()]
    columns = (*WINDOW_HEAD, *titles, *TOTALS, *(PROPAGATED if propagated else ()))
    rows = tuple(_window_row(record, list(shown), propagated) for record in run.records)
    return Table(f"Windows of {run.name}", columns, rows)


def make_window_footer(run: Run, summary: Mapping[str, float]) -> list[str]:
    """Make the cells below the columns of metrics and totals: means over windows, and sums."""
    means = [
        format_cell(summary[name]) if metric.of_window else ""
        for name, metric in shown_for("windows", run.records).items()
    ]
    propagated = [str(summary["n_propagated"]), format_cell(summary["propagated_right"])]
    totals = [str(summary["n_queried"]), format_cell(summary["seconds"], 1)]
    return [*means, *totals, *(propagated if summary["n_propagated"] else [])]


def make_run_table(
    runs: Sequence[Run], names: Sequence[str], summaries: Sequence[Mapping[str, float]]
) -> Table:
    """Make a table with a row for each run."""
    titles = [metric.title for metric in shown_in("runs").values()]
    columns = ("run", *RUN_HEAD, "windows", *titles, *TOTALS)
    return Table("Runs", columns, tuple(map(_run_row, runs, names, summaries)))


def sort_runs(runs: Sequence[Run]) -> list[Run]:
    """Sort the runs on the same data, scenario and scale by H, the largest first."""
    streams = [_stream(run) for run in runs]

    def place(run: Run) -> tuple[int, bool, float]:
        return streams.index(_stream(run)), *rank_by_h(summarize(run.records))

    return sorted(runs, key=place)


def _window_row(record: WindowRecord, metrics: Sequence[str], propagated: bool) -> tuple[Cell, ...]:
    return (
        record.window, record.n_novel_planned, record.n_novel_found,
        *(value_after(name, record) for name in metrics),
        record.n_queried, round(record.seconds_detect + record.seconds_update, 2),
        *((record.n_propagated, record.propagated_right) if propagated else ()),
    )  # fmt: skip


def _run_row(run: Run, name: str, summary: Mapping[str, float]) -> tuple[Cell, ...]:
    return (
        name, *(_describe_setting(run.about.get(key)) for key in RUN_HEAD), summary["n_windows"],
        *(summary[metric] for metric in shown_in("runs")),
        summary["n_queried"], round(summary["seconds"], 2),
    )  # fmt: skip


def _describe_setting(value: Any) -> Cell:
    """A value of run.json as a cell: the changes of a run are a list."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _stream(run: Run) -> tuple[str, ...]:
    """The values that two runs must share to be compared; seeds may differ."""
    return tuple(str(run.about.get(key)) for key in ("data", "scenario", "scale"))
