"""Figures 6, 8, 9, 10 and 11: metrics by window, share of labels and weights; seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.item import MULTIPLE, SINGLE, Inputs, Item, cross, describe_scenario
from cilf.benchmark.paper.panels import Series, plot_bars, plot_heatmaps, plot_lines, write_files
from cilf.benchmark.paper.results import (
    Cell,
    Results,
    average_seeds,
    average_windows,
    drop_empty,
    list_data,
    name_file,
    select_data,
)
from cilf.benchmark.paper.setup import DETECTORS, OURS, Setup
from cilf.benchmark.paper.tables import DETECTION
from cilf.benchmark.results import compute_std
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.metrics import mean
from cilf.query.strategies import RANDOM
from cilf.report.run import Run
from cilf.report.tables import Cell as TableCell
from cilf.report.tables import Table

STRATEGIES = (RANDOM, "representative")
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the instances found novel whose labels are queried
LAMBDA1, LAMBDA2 = "loss__lambda1", "loss__lambda2"
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)
SMOKE_LAMBDAS = (0.01, 1.0, 100.0)
TIMED = ("odin-cnn", "cfo", "cpe", "dtc", "cilf-paper", "cilf")
# The metric on known classes, and the metric that it is the same as on all classes.
KNOWN = {
    "plan_aks": "plan_na", "plan_known_macro_f": "plan_macro_f",
    "plan_known_micro_f": "plan_micro_f", "plan_known_auroc": "plan_auroc",
}  # fmt: skip

Columns = tuple[str, ...]
Rows = Sequence[tuple[TableCell, ...]]


def metric_curves(scenario: str) -> Item:
    """Plot the metrics on known classes by window, with a line for each detector."""
    return Item(
        f"Metrics on known classes in each window, scenario {scenario}",
        f"{describe_scenario(scenario)} The metrics are those of instances of known classes alone. "
        "A line that falls shows that classes are forgotten, or taken for novel ones, as more "
        "classes are learned. The paper's claim, that CILF is above the others in every window, "
        "holds where the black line is the highest.",
        partial(_write_by_data, _plot_metric_curves),
        lambda setup: cross(setup.rows_for(DETECTORS), setup.data_for(["cifar10"]), scenario),
    )


def query_curves() -> Item:
    """Plot the metrics by the share of labels queried, a line for each scenario and strategy."""

    def cells(setup: Setup) -> list[Cell]:
        return [
            Cell(learner, data, scenario, query=share, strategy=strategy)
            for data in setup.data_for(["cifar10"])
            for learner in setup.learners_for(["cilf"])
            for scenario in (SINGLE, MULTIPLE)
            for share in SHARES
            for strategy in (STRATEGIES if share < 1 else (RANDOM,))
        ]

    return Item(
        "Performance by the share of labels queried",
        "A person labels only a share of the instances found novel. The lines show how "
        "performance depends on that share, if the instances are drawn at random, as in the "
        "paper, and if those near the centre of each cluster are taken (representative). With all "
        "labels both are the same run. The paper's claim, that more labels are better, holds where "
        "lines rise to the right.",
        partial(_write_by_data, _plot_query_curves),
        cells,
    )


def weight_heatmaps() -> Item:
    """Plot AUROC for each pair of λ1 and λ2, with a panel for each learner and scenario."""

    def cells(setup: Setup) -> list[Cell]:
        weights = SMOKE_LAMBDAS if setup.scale == "smoke" else LAMBDAS
        return [
            Cell(learner, data, scenario, parameters=((LAMBDA1, one), (LAMBDA2, two)))
            for learner in setup.paper_learners_for(OURS)
            for data in setup.data_for(["cifar10"])
            for scenario in (SINGLE, MULTIPLE)
            for one in weights
            for two in weights
        ]

    return Item(
        "AUROC by the weights λ1 and λ2",
        "λ1 weighs the loss that separates classes, λ2 the loss that keeps the prototypes of known "
        "classes in place: in fit and update, and in cilf-paper also in the detection. Where "
        "neighbours have one colour, the choice matters little. The paper's claim, that λ1 above 1 "
        "is better, holds where the upper rows are brighter than the lower ones.",
        partial(_write_by_data, _plot_weight_heatmaps),
        cells,
    )


def time_bars() -> Item:
    """Plot the seconds of detection and of updates, with a panel for each data set."""

    def cells(setup: Setup) -> list[Cell]:
        data = setup.data_for(["cifar10", "cifar50"])
        return cross(setup.rows_for(TIMED), data, MULTIPLE)

    return Item(
        "Execution time, scenario multiple",
        "The bars show the seconds that all detections and all updates of a run take, on a "
        "logarithmic scale. The paper's claim, that CILF is the fastest, holds where its bars are "
        "the lowest. Seconds depend on what else the machine does; run.json of each run names it.",
        _write_time_bars,
        cells,
    )


def _plot_metric_curves(results: Results) -> tuple[Any, Columns, Rows]:
    cells = drop_empty(results)
    known = {metric: METRICS[name].title for metric, name in KNOWN.items()}
    rows = [
        (metric, cell.name, seed, record.window, record.metric(metric))
        for metric in known
        for cell, runs in cells.items()
        for seed, run in runs.items()
        for record in run.records
    ]
    panels = {
        title: {cell.name: _average_by_window(runs, metric) for cell, runs in cells.items()}
        for metric, title in known.items()
    }
    return plot_lines(panels, "window"), ("metric", "learner", "seed", "window", "value"), rows


def _average_by_window(runs: Mapping[int, Run], metric: str) -> Series:
    values: dict[int, list[float]] = {}
    for run in runs.values():
        for record in run.records:
            values.setdefault(record.window, []).append(record.metric(metric))
    windows = sorted(values)
    return _series(windows, [values[window] for window in windows])


def _series(x: Sequence[float], values: list[list[float]]) -> Series:
    return Series(x, [mean(each) for each in values], [compute_std(each) for each in values])


def _plot_query_curves(results: Results) -> tuple[Any, Columns, Rows]:
    cells = drop_empty(results)
    rows = [
        (metric, cell.name, cell.scenario, cell.strategy, cell.query, seed, value)
        for metric in DETECTION
        for cell, runs in cells.items()
        for seed, value in zip(runs, average_windows(runs, metric), strict=True)
    ]
    panels = {METRICS[metric].title: _average_by_share(cells, metric) for metric in DETECTION}
    columns = ("metric", "learner", "scenario", "strategy", "share", "seed", "value")
    return plot_lines(panels, "labels queried", percent=True), columns, rows


def _average_by_share(results: Results, metric: str) -> dict[str, Series]:
    lines: dict[str, Series] = {}
    for learner, scenario in dict.fromkeys((cell.name, cell.scenario) for cell in results):
        same = [cell for cell in results if (cell.name, cell.scenario) == (learner, scenario)]
        for strategy in dict.fromkeys(cell.strategy for cell in same):
            own = [cell for cell in same if cell.strategy == strategy or cell.query == 1]
            values = [average_windows(results[cell], metric) for cell in own]
            line = _series([cell.query for cell in own], values)
            lines[f"{learner}, {scenario}, {strategy}"] = line
    return lines


def _plot_weight_heatmaps(results: Results) -> tuple[Any, Columns, Rows]:
    by_weights = {(_name_panel(cell), *_weights(cell)): runs for cell, runs in results.items()}
    ticks = sorted({one for _, one, _ in by_weights})
    panels = {
        panel: np.array(
            [[average_seeds(by_weights[panel, one, two], "plan_auroc") for two in ticks]
             for one in ticks]
        )
        for panel in dict.fromkeys(_name_panel(cell) for cell in drop_empty(results))
    }  # fmt: skip
    rows = [
        (cell.learner, cell.scenario, *_weights(cell), seed, value)
        for cell, runs in results.items()
        for seed, value in zip(runs, average_windows(runs, "plan_auroc"), strict=True)
    ]
    columns = ("learner", "scenario", "lambda1", "lambda2", "seed", "auroc")
    return plot_heatmaps(panels, ticks, ("λ1", "λ2")), columns, rows


def _name_panel(cell: Cell) -> str:
    return f"{cell.name}, {cell.scenario}"


def _weights(cell: Cell) -> tuple[float, float]:
    (_, lambda1), (_, lambda2) = cell.parameters
    return lambda1, lambda2


def _write_by_data(
    plot: Callable[[Results], tuple[Any, Columns, Rows]], inputs: Inputs
) -> list[Path]:
    """Write a figure for each data set, with the numbers that it plots."""
    written: list[Path] = []
    for data in list_data(drop_empty(inputs.results)):
        figure, columns, rows = plot(select_data(inputs.results, data))
        name = name_file(inputs.name, data, inputs.results)
        written += write_files(figure, Table(inputs.title, columns, tuple(rows)), inputs.out, name)
    return written


def _write_time_bars(inputs: Inputs) -> list[Path]:
    panels: dict[str, dict[str, dict[str, float]]] = {}
    rows = []
    for cell, runs in drop_empty(inputs.results).items():
        seconds = {
            "detection": average_seeds(runs, "seconds_detect"),
            "update": average_seeds(runs, "seconds_update"),
        }
        panels.setdefault(data_file_name(cell.data), {})[cell.name] = seconds
        rows += [(cell.data, cell.name, step, value) for step, value in seconds.items()]
    table = Table(inputs.title, ("data", "learner", "step", "seconds"), tuple(rows))
    return write_files(plot_bars(panels, "seconds in a run"), table, inputs.out, inputs.name)
