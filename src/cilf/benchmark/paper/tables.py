"""Tables 2 to 5: learners by metrics and data sets, the paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.comparison import (
    FORGETTING,
    LEVEL,
    Score,
    compute_p_value,
    compute_score,
    find_best,
)
from cilf.benchmark.paper.item import Inputs, Item, cross, describe_scenario
from cilf.benchmark.paper.published import COLUMNS, Published, find_published
from cilf.benchmark.paper.results import collect_records
from cilf.benchmark.paper.setup import DATA, DETECTORS, JOINT, SYSTEMS
from cilf.core.files import make_folder, replace_file
from cilf.evaluate.metric_table import METRICS
from cilf.report.tables import MISSING, Table

DETECTION = ("na", "macro_f", "micro_f", "auroc")
DIFFERS = "\N{DAGGER}"
NOTE = (
    f"Mean ± standard deviation over seeds. The best mean is bold. {DIFFERS}: differs from the "
    f"best, p < {LEVEL:g} (Wilcoxon, paired over seeds and windows)."
)
NOTE_ON_PAPER = " The paper's numbers are from its own streams, networks and definitions."
CSV_COLUMNS = (
    "metric", "learner", "data", "scenario", "mean", "std", "n_seeds", "p_against_best",
    "paper_mean", "paper_std",
)  # fmt: skip


def detection_table(scenario: str) -> Item:
    """Compare detectors by NA, both F-measures and AUROC."""
    meanings = " ".join(f"{METRICS[name].title}: {METRICS[name].meaning}" for name in DETECTION)
    return Item(
        f"Novel class detection, scenario {scenario}",
        f"{describe_scenario(scenario)} The table shows how well learners tell known from novel "
        f"instances, and novel classes from each other. {meanings} More is better.",
        lambda inputs: write_table(_score_detection(inputs), scenario, inputs),
        lambda setup: cross(setup.learners_for(DETECTORS), setup.data_for(DATA), scenario),
    )


def forgetting_table(scenario: str) -> Item:
    """Compare all systems by forgetting, against ``joint`` on the same streams."""
    return Item(
        f"Forgetting (less is better), scenario {scenario}",
        f"{describe_scenario(scenario)} Forgetting is the share of hold-out accuracy that a "
        "learner lacks after later windows, compared with joint, which trains on all data again. "
        "It is a mean over windows. Below 0 the learner is better than joint.",
        lambda inputs: write_table(_score_forgetting(inputs), scenario, inputs),
        lambda setup: cross((*setup.learners_for(SYSTEMS), JOINT), setup.data_for(DATA), scenario),
    )


@dataclass(frozen=True)
class Comparison:
    """One metric of one learner on one data set: our score, the paper's, and how it compares."""

    score: Score
    paper: Published | None
    p: float  # against the best; NaN for the best, and if there is nothing to compare
    is_best: bool

    def format(self) -> str:
        """Format our score as a cell of the table.

        >>> Comparison(Score({0: 0.9, 1: 0.8}), None, 0.01, False).format()
        '0.850 ± 0.071†'
        """
        if math.isnan(self.score.mean):
            return MISSING
        deviation = "" if math.isnan(self.score.std) else f" ± {self.score.std:.3f}"
        return f"{self.score.mean:z.3f}{deviation}{DIFFERS if self.p < LEVEL else ''}"


Key = tuple[str, str, str]  # metric, learner, data set


def compare(scores: Mapping[Key, Score], scenario: str) -> dict[Key, Comparison]:
    """Compare each score with the best of its metric and data set."""
    compared: dict[Key, Comparison] = {}
    for (metric, name, data), own in scores.items():
        rivals = {n: s for (m, n, d), s in scores.items() if (m, d) == (metric, data)}
        best = find_best(rivals, metric)
        p = compute_p_value(rivals[best[0]], own) if best and name not in best else math.nan
        paper = find_published(scenario, metric, name, data)
        compared[metric, name, data] = Comparison(own, paper, p, name in best)
    return compared


def make_table(compared: Mapping[Key, Comparison], title: str) -> Table:
    """Make a table for people: a row for each metric and learner, columns for each data set."""
    data_sets = list(dict.fromkeys(data for _, _, data in compared))
    heads: list[str] = ["metric", "learner"]
    for data in data_sets:
        heads += [COLUMNS[data], "paper"] if data in COLUMNS else [data_file_name(data)]
    rows: list[tuple[str, ...]] = []
    bold: set[tuple[int, int]] = set()
    for metric, name in dict.fromkeys((metric, name) for metric, name, _ in compared):
        cells = [METRICS[metric].title, name]
        for data in data_sets:
            cell = compared.get((metric, name, data))
            if cell is not None and cell.is_best:
                bold.add((len(rows), len(cells)))
            cells.append(cell.format() if cell else MISSING)
            if data in COLUMNS:
                cells.append(_format_published(cell.paper if cell else None))
        rows.append(tuple(cells))
    note = NOTE + (NOTE_ON_PAPER if any(cell.paper for cell in compared.values()) else "")
    return Table(title, tuple(heads), tuple(rows), frozenset(bold), note)


def _format_published(paper: Published | None) -> str:
    return MISSING if paper is None else f"{paper.mean:.3f} ± {paper.std:.3f}"


def make_csv_table(compared: Mapping[Key, Comparison], scenario: str) -> Table:
    """Make a table for programs: one comparison in each row, as numbers."""
    rows = [
        (
            metric, name, data, scenario, cell.score.mean, cell.score.std,
            cell.score.n_seeds, cell.p,
            cell.paper.mean if cell.paper else None, cell.paper.std if cell.paper else None,
        )
        for (metric, name, data), cell in compared.items()
    ]  # fmt: skip
    return Table("", CSV_COLUMNS, tuple(rows))


def write_table(scores: Mapping[Key, Score], scenario: str, inputs: Inputs) -> list[Path]:
    """Write ``.md`` and ``.tex`` for people, ``.csv`` for programs, ``.json`` for the report."""
    compared = compare(scores, scenario)
    table = make_table(compared, inputs.title)
    texts = {
        "md": table.to_markdown(),
        "csv": make_csv_table(compared, scenario).to_csv(),
        "tex": table.to_latex(),
        "json": table.to_json(),
    }
    make_folder(inputs.out)
    for suffix, text in texts.items():
        replace_file(inputs.out / f"{inputs.name}.{suffix}", text.encode())
    return [inputs.out / f"{inputs.name}.{suffix}" for suffix in texts]


def _score_detection(inputs: Inputs) -> dict[Key, Score]:
    return {
        (metric, cell.name, cell.data): compute_score(metric, collect_records(runs))
        for metric in DETECTION
        for cell, runs in inputs.results.items()
    }


def _score_forgetting(inputs: Inputs) -> dict[Key, Score]:
    records = {cell: collect_records(runs) for cell, runs in inputs.results.items()}
    joint = {cell.data: each for cell, each in records.items() if cell.learner == JOINT}
    return {
        (FORGETTING, cell.name, cell.data): compute_score(FORGETTING, each, joint[cell.data])
        for cell, each in records.items()
        if cell.learner != JOINT
    }
