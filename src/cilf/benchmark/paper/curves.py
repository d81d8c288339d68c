"""Figures 6, 8, 9, 10 and 11: what the records of many runs say, over windows, labels, weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.comparison import spread
from cilf.benchmark.paper.panels import (
    Series,
    plot_bars,
    plot_heatmaps,
    plot_lines,
    write_files,
)
from cilf.benchmark.paper.published import METRICS
from cilf.benchmark.paper.results import (
    Making,
    Results,
    average,
    averages,
    datas,
    of_data,
    stem,
    there,
)
from cilf.evaluate.metrics import mean
from cilf.report.run import Run
from cilf.report.tables import Table

DETECTION = ("na", "macro_f", "micro_f", "auroc")
KNOWN = tuple(f"known_{metric}" for metric in DETECTION)
DETECT, UPDATE = "detection", "update"


def write_windows(making: Making, name: str, title: str) -> list[Path]:
    """The metrics on known classes in each window, a line for each learner."""
    results, out = making.results, making.out
    written: list[Path] = []
    for data in datas(there(results)):
        cells = there(of_data(results, data))
        rows = [
            (metric, cell.name, seed, record.window, float(getattr(record, metric)))
            for metric in KNOWN
            for cell, runs in cells.items()
            for seed, run in runs.items()
            for record in run.records
        ]
        panels = {
            METRICS[metric.removeprefix("known_")]: {
                cell.name: _over_windows(list(runs.values()), metric)
                for cell, runs in cells.items()
            }
            for metric in KNOWN
        }
        table = Table(title, ("metric", "learner", "seed", "window", "value"), tuple(rows))
        figure = plot_lines(panels, "window")
        written += write_files(figure, table, out, stem(name, data, results))
    return written


def _over_windows(runs: list[Run], metric: str) -> Series:
    windows = sorted({record.window for run in runs for record in run.records})
    values = [
        [float(getattr(r, metric)) for run in runs for r in run.records if r.window == window]
        for window in windows
    ]
    return Series(windows, [mean(each) for each in values], [spread(each) for each in values])


def write_queries(making: Making, name: str, title: str) -> list[Path]:
    """Performance by the share of labels that were asked for, a line for each scenario."""
    results, out = making.results, making.out
    written: list[Path] = []
    for data in datas(there(results)):
        cells = there(of_data(results, data))
        rows = [
            (metric, cell.name, cell.scenario, cell.query, seed, value)
            for metric in DETECTION
            for cell, runs in cells.items()
            for seed, value in zip(runs, averages(runs, metric), strict=True)
        ]
        panels = {METRICS[metric]: _over_shares(cells, metric) for metric in DETECTION}
        columns = ("metric", "learner", "scenario", "share", "seed", "value")
        figure = plot_lines(panels, "labels asked for", percent=True)
        written += write_files(
            figure, Table(title, columns, tuple(rows)), out, stem(name, data, results)
        )
    return written


def _over_shares(results: Results, metric: str) -> dict[str, Series]:
    lines: dict[str, Series] = {}
    for learner, scenario in dict.fromkeys((cell.name, cell.scenario) for cell in results):
        own = [cell for cell in results if (cell.name, cell.scenario) == (learner, scenario)]
        values = [averages(results[cell], metric) for cell in own]
        lines[f"{learner}, {scenario}"] = Series(
            [cell.query for cell in own],
            [mean(each) for each in values],
            [spread(each) for each in values],
        )
    return lines


def write_weights(making: Making, name: str, title: str) -> list[Path]:
    """AUROC for each pair of λ1 and λ2."""
    results, out = making.results, making.out
    written: list[Path] = []
    for data in datas(there(results)):
        cells = of_data(results, data)
        found = {(cell.scenario, *_weights(cell.parameters)): cell for cell in cells}
        ticks = sorted({one for _, one, _ in found})
        panels = {
            scenario: np.array(
                [[average(cells[found[scenario, one, two]], "auroc") for two in ticks]
                 for one in ticks]
            )
            for scenario in dict.fromkeys(cell.scenario for cell in cells)
        }  # fmt: skip
        rows = [
            (cell.scenario, *_weights(cell.parameters), seed, value)
            for cell, runs in cells.items()
            for seed, value in zip(runs, averages(runs, "auroc"), strict=True)
        ]
        table = Table(title, ("scenario", "lambda1", "lambda2", "seed", "auroc"), tuple(rows))
        figure = plot_heatmaps(panels, ticks, ("λ1", "λ2"))
        written += write_files(figure, table, out, stem(name, data, results))
    return written


def _weights(parameters: tuple[tuple[str, float], ...]) -> tuple[float, float]:
    chosen = dict(parameters)
    return chosen["lambda1"], chosen["lambda2"]


def write_times(making: Making, name: str, title: str) -> list[Path]:
    """Seconds of detection and of update in a run, a panel for each data set."""
    results, out = making.results, making.out
    panels: dict[str, dict[str, dict[str, float]]] = {}
    rows = []
    for cell, runs in there(results).items():
        seconds = {
            DETECT: average(runs, "seconds_detect"),
            UPDATE: average(runs, "seconds_update"),
        }
        panels.setdefault(data_file_name(cell.data), {})[cell.name] = seconds
        rows += [(cell.data, cell.name, what, value) for what, value in seconds.items()]
    table = Table(title, ("data", "learner", "part", "seconds"), tuple(rows))
    return write_files(plot_bars(panels, "seconds in a run"), table, out, name)
