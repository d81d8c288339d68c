"""``cilf`` with a frozen network for photographs, on the paper's data sets of photographs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.comparison import FORGETTING, Score, compute_score
from cilf.benchmark.paper.item import MULTIPLE, SINGLE, Inputs, Item, cross
from cilf.benchmark.paper.published import COLUMNS
from cilf.benchmark.paper.results import Cell, Results, collect_records
from cilf.benchmark.paper.setup import CEILING, FLOOR, Row, Setup
from cilf.benchmark.paper.tables import (
    ALL,
    FIRST,
    Column,
    H,
    explain_gaps,
    find_gap,
    format_score,
    sign_gap,
    write_table,
)
from cilf.evaluate.metric_table import METRICS
from cilf.query.query_policy import FOUND, GIVEN
from cilf.report.tables import Table

ENCODER = "efficientnet-lite2"
PHOTOGRAPHS = ("cifar10", "cifar50", "cifar100")
DETECTION = tuple(Column(m) for m in (H, "plan_na", "plan_macro_f", "plan_micro_f", "plan_auroc"))
COLUMNS_SHOWN = (
    *DETECTION, *(Column(metric, protocol) for protocol in (GIVEN, FOUND)
                  for metric in (FORGETTING, FIRST, ALL)),
)  # fmt: skip
CSV_COLUMNS = (
    "metric", "protocol", "learner", "data", "scenario", "mean", "std", "n_seeds",
)  # fmt: skip


def encoder_table() -> Item:
    """Compare ``cilf`` with the floor and the upper bound, all with a frozen encoder."""
    return Item(
        "With a frozen encoder of photographs",
        f"No table of the paper: its networks are trained from scratch. {ENCODER} was trained on "
        "photographs of a thousand classes, some of which are those of the data sets. So these "
        "numbers stand beside no other system. They show what the same learner reaches where such "
        "a network may be used.",
        _write_encoder,
        list_cells,
    )


def list_cells(setup: Setup) -> list[Cell]:
    """List the runs on photographs: the encoder is not made for digits, vectors and texts."""
    data = [name for name in setup.data_for(PHOTOGRAPHS) if name in PHOTOGRAPHS]
    encoder = (("backbone", ENCODER),)
    rows = [Row(name, "encoder", encoder) for name in (*setup.paper_learners_for(["cilf"]), FLOOR)]
    ceiling = Row(CEILING, "encoder", encoder)
    return [
        cell
        for scenario in (SINGLE, MULTIPLE)
        for cell in (
            *cross(rows, data, scenario),
            *cross([*rows, ceiling], data, scenario, GIVEN),
        )
    ]


Place = tuple[str, str, Row]  # data set, scenario and row


def _write_encoder(inputs: Inputs) -> list[Path]:
    scores = _compute_scores(inputs.results)
    return write_table(_make_table(scores, inputs.title), _make_csv_table(scores), inputs)


def _compute_scores(results: Results) -> dict[Place, dict[Column, Score]]:
    joint = {
        (cell.data, cell.scenario): collect_records(runs)
        for cell, runs in results.items()
        if cell.learner == CEILING
    }
    scores: dict[Place, dict[Column, Score]] = {}
    for cell, runs in results.items():
        upper = joint.get((cell.data, cell.scenario))
        scores.setdefault((cell.data, cell.scenario, cell.row), {}).update(
            {
                column: compute_score(column.metric, collect_records(runs), upper)
                for column in COLUMNS_SHOWN
                if column.protocol == cell.protocol
            }
        )
    return scores


def _make_table(scores: Mapping[Place, Mapping[Column, Score]], title: str) -> Table:
    heads = [
        METRICS[column.metric].title + ("" if column in DETECTION else f", {column.protocol}")
        for column in COLUMNS_SHOWN
    ]
    rows = [
        (
            COLUMNS.get(data, data_file_name(data)), scenario, Row(row.learner).name,
            *(sign_gap(format_score(own.get(c)), find_gap(own, c)) for c in COLUMNS_SHOWN),
        )
        for (data, scenario, row), own in scores.items()
    ]  # fmt: skip
    note = "Mean ± standard deviation over seeds."
    return Table(
        title, ("data", "scenario", "learner", *heads), tuple(rows), note=note + explain_gaps(rows)
    )


def _make_csv_table(scores: Mapping[Place, Mapping[Column, Score]]) -> Table:
    rows = [
        (
            column.metric, column.protocol, Row(row.learner).name, data, scenario,
            score.mean, score.std, score.n_seeds,
        )
        for (data, scenario, row), own in scores.items()
        for column, score in own.items()
    ]  # fmt: skip
    return Table("", CSV_COLUMNS, tuple(rows))
