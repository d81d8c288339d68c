"""A run in a few numbers, in one sentence, and as a row of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cilf.core import WindowRecord
from cilf.evaluate.metrics import mean
from cilf.evaluate.summary import summarize
from cilf.query.budget import SELF
from cilf.report.run import Run
from cilf.report.tables import MISSING, Cell, Table

WINDOW_COLUMNS = (
    "window", "true K", "found K", "NA", "Macro-F", "Micro-F", "AUROC", "hold-out old",
    "hold-out new", "queried", "seconds",
)  # fmt: skip
PROPAGATED_COLUMNS = ("taught unasked", "rightly so")  # only where there is something to say
RUN_COLUMNS = (
    "run", "learner", "data", "scenario", "scale", "seed", "windows", "K exact", "NA", "Macro-F",
    "Micro-F", "AUROC", "hold-out first", "hold-out all", "queried", "seconds",
)  # fmt: skip
HIGHER_IS_BETTER = (
    "K exact",
    "NA",
    "Macro-F",
    "Micro-F",
    "AUROC",
    "hold-out first",
    "hold-out all",
)


@dataclass(frozen=True)
class Summary:
    """Means over the windows where a metric is defined, and the end of the run."""

    n_windows: int
    n_exact: int  # windows whose number of novel classes was found exactly
    na: float
    macro_f: float
    micro_f: float
    auroc: float
    holdout_first: float  # after the last window: accuracy on the initial classes
    holdout_all: float  # and on every class that has come
    n_queried: int
    n_propagated: int  # instances taught under a label that nobody gave them
    propagated_right: float  # share of these labels that are true
    seconds: float

    @classmethod
    def of(cls, run: Run) -> Summary:
        records = run.records
        numbers = summarize(records)
        return cls(
            n_windows=len(records),
            n_exact=sum(r.n_novel_found == r.n_novel_true for r in records),
            **{name: numbers[name] for name in ("na", "macro_f", "micro_f", "auroc")},
            holdout_first=numbers["holdout_first"],
            holdout_all=numbers["holdout_all"],
            n_queried=sum(r.n_queried for r in records),
            n_propagated=sum(r.n_propagated for r in records),
            propagated_right=numbers["propagated_right"],
            seconds=numbers["seconds_detect"] + numbers["seconds_update"],
        )


def window_table(run: Run) -> Table:
    """One row per window."""
    propagated = any(record.n_propagated for record in run.records)
    columns = (*WINDOW_COLUMNS, *(PROPAGATED_COLUMNS if propagated else ()))
    rows = tuple(_window_row(record, propagated) for record in run.records)
    return Table(f"Windows of {run.name}", columns, rows)


def run_table(runs: Sequence[Run], names: Sequence[str]) -> Table:
    """One row per run; the best of those on the same stream is bold."""
    rows = tuple(_run_row(run, name) for run, name in zip(runs, names, strict=True))
    return Table("Runs", RUN_COLUMNS, rows, _best(runs, rows))


def sentence(run: Run, summary: Summary) -> str:
    """What happened, for someone who has not read the paper."""
    if not run.records and run.failure:
        return f"The run failed before its first window: {run.failure}"
    if not run.records:
        return "The run has not finished its first window yet, so there is nothing to score."
    news = sum(len(window.novel) for window in run.planned[: summary.n_windows])
    start = (
        f"Starting from {_count(len(run.initial), 'labelled class', 'labelled classes')}, "
        f"{run.about.get('learner', 'the learner')} watched "
        f"{_count(summary.n_windows, 'window', 'windows')} of unlabelled data in which "
        f"{_count(news, 'new class', 'new classes')} turned up."
    )
    failed = f"Then it failed: {run.failure}" if run.failure else ""
    return " ".join([start, _counting(run, summary), _remembering(summary), failed]).strip()


def data_rows(dataset: Mapping[str, Any]) -> str:
    """How much data there was, and whether that was all of it; "" if the run does not say.

    >>> data_rows({"train_rows": 25000, "test_rows": 10000, "part_of_rows": [50000, 10000]})
    '25,000 training and 10,000 test rows, a part of the original 50,000 and 10,000'
    """
    if not dataset:
        return ""
    there = f"{dataset['train_rows']:,} training and {dataset['test_rows']:,} test rows"
    if not dataset.get("part_of_rows"):
        return there
    train, test = dataset["part_of_rows"]
    return f"{there}, a part of the original {train:,} and {test:,}"


def data_facts(dataset: Mapping[str, Any]) -> dict[str, str]:
    """What a report says of the data, by name.

    >>> data_facts({"train_rows": 9, "test_rows": 3, "n_classes": 2, "instance_shape": [8, 8]})
    {'rows': '9 training and 3 test rows', 'classes': '2', 'instance': '8 x 8'}
    """
    if not dataset:
        return {}
    instance = " x ".join(str(side) for side in dataset["instance_shape"]) or "text"
    classes = str(dataset["n_classes"])
    return {"rows": data_rows(dataset), "classes": classes, "instance": instance}


def percent(value: float) -> str:
    return MISSING if math.isnan(value) else f"{100 * value:.0f} %"


def _counting(run: Run, summary: Summary) -> str:
    asked = _asked(run, summary)
    if run.about.get("n_novel") is not None:
        return f"It was told how many new classes to look for, and {asked}."
    exact = f"{summary.n_exact} of {_count(summary.n_windows, 'window', 'windows')}"
    return f"It counted the new classes exactly in {exact}, and {asked}."


def _asked(run: Run, summary: Summary) -> str:
    if run.about.get("query") == SELF:
        made = sum(len(record.named) for record in run.records)
        return f"made {_count(made, 'class', 'classes')} of its own of them without asking anybody"
    asked = f"asked for {_count(summary.n_queried, 'label', 'labels')}"
    if not summary.n_propagated:
        return asked
    others = _count(summary.n_propagated, "other instance", "other instances")
    return f"{asked} that named {others} too, {percent(summary.propagated_right)} of them rightly"


def _remembering(summary: Summary) -> str:
    if math.isnan(summary.holdout_first):
        return ""
    return (
        f"At the end it recognised {percent(summary.holdout_first)} of the held-out instances of "
        f"the classes it started with, and {percent(summary.holdout_all)} over all classes so far."
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _window_row(record: WindowRecord, propagated: bool) -> tuple[Cell, ...]:
    later = [value for group, value in record.holdout_accuracy.items() if group >= 1]
    return (
        record.window, record.n_novel_true, record.n_novel_found, record.na, record.macro_f,
        record.micro_f, record.auroc, record.holdout_accuracy.get(0, math.nan), mean(later),
        record.n_queried, round(_seconds(record), 2),
        *((record.n_propagated, record.propagated_right) if propagated else ()),
    )  # fmt: skip


def _run_row(run: Run, name: str) -> tuple[Cell, ...]:
    about, s = run.about, Summary.of(run)
    exact = s.n_exact / s.n_windows if s.n_windows else math.nan
    return (
        name, *(about.get(key) for key in ("learner", "data", "scenario", "scale", "seed")),
        s.n_windows, exact, s.na, s.macro_f, s.micro_f, s.auroc, s.holdout_first, s.holdout_all,
        s.n_queried, round(s.seconds, 2),
    )  # fmt: skip


def _best(runs: Sequence[Run], rows: tuple[tuple[Cell, ...], ...]) -> frozenset[tuple[int, int]]:
    columns = [RUN_COLUMNS.index(name) for name in HIGHER_IS_BETTER]
    streams = [_stream(run) for run in runs]
    best = set()
    for stream in set(streams):
        same = [i for i, other in enumerate(streams) if other == stream]
        if len(same) > 1:
            best |= {(i, column) for column in columns for i in _highest(rows, same, column)}
    return frozenset(best)


def _stream(run: Run) -> tuple[str, ...]:
    """What must agree before two runs may be compared; seeds may differ."""
    return tuple(str(run.about.get(key)) for key in ("data", "scenario", "scale"))


def _highest(rows: tuple[tuple[Cell, ...], ...], among: list[int], column: int) -> list[int]:
    values = {i: rows[i][column] for i in among}
    defined = {i: v for i, v in values.items() if isinstance(v, float) and not math.isnan(v)}
    return [i for i, v in defined.items() if v == max(defined.values())]


def _seconds(record: WindowRecord) -> float:
    return record.seconds_detect + record.seconds_update
