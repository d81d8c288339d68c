"""Tables 2 to 5: learners by metrics and data sets, the paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper import comparison
from cilf.benchmark.paper.comparison import FORGETTING, Score, score
from cilf.benchmark.paper.published import COLUMNS, METRICS, Published, published
from cilf.benchmark.paper.results import Making, Results, records
from cilf.benchmark.paper.setup import JOINT
from cilf.core.files import make_folder, replace_file
from cilf.report.tables import MISSING, Table

DETECTION = ("na", "macro_f", "micro_f", "auroc")
DIFFERS = "\N{DAGGER}"
LEGEND = (
    "Mean ± deviation over seeds; best in bold; {mark}: differs from the best, p < {level:g} "
    "(Wilcoxon, paired over seeds and windows)."
)
ABOUT_PAPER = "The paper's numbers are from its own streams, networks and definitions."
COLUMNS_OF_DATA = (
    "metric", "learner", "data", "scenario", "mean", "std", "n_seeds", "p_against_best",
    "paper_mean", "paper_std",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """One learner, metric and data set: our score, what the paper has, how it compares."""

    score: Score
    paper: Published | None
    p: float  # against the best; NaN if it is the best, or if there is nothing to compare
    is_best: bool

    def shown(self) -> str:
        """Ours, as a cell.

        >>> Compared(Score({0: 0.9, 1: 0.8}), None, 0.01, False).shown()
        '0.850 ± 0.071†'
        """
        if math.isnan(self.score.mean):
            return MISSING
        deviation = "" if math.isnan(self.score.std) else f" ± {self.score.std:.3f}"
        return f"{self.score.mean:z.3f}{deviation}{DIFFERS if self.p < comparison.LEVEL else ''}"


Scores = Mapping[tuple[str, str, str], Score]  # by metric, learner, data
Comparison = dict[tuple[str, str, str], Compared]


def compare(scores: Scores, scenario: str) -> Comparison:
    """Mark the best and what differs from it, within each metric and data set."""
    compared: Comparison = {}
    for (metric, name, data), own in scores.items():
        rivals = {n: s for (m, n, d), s in scores.items() if (m, d) == (metric, data)}
        first = comparison.best(rivals, metric)
        compares = bool(first) and name not in first
        p = comparison.p_value(rivals[first[0]], own) if compares else math.nan
        paper = published(scenario, metric, name, data)
        compared[metric, name, data] = Compared(own, paper, p, name in first)
    return compared


def table(compared: Comparison, title: str) -> Table:
    """One row for each metric and learner, two columns for each data set."""
    datas = list(dict.fromkeys(data for _, _, data in compared))
    with_paper = [d for d in datas if d in COLUMNS]
    heads: list[str] = ["metric", "learner"]
    for data in datas:
        heads += [
            COLUMNS.get(data, data_file_name(data)),
            *(["paper"] if data in with_paper else []),
        ]
    rows: list[tuple[str, ...]] = []
    bold: set[tuple[int, int]] = set()
    for metric, name in dict.fromkeys((metric, name) for metric, name, _ in compared):
        cells = [METRICS.get(metric, metric), name]
        for data in datas:
            cell = compared.get((metric, name, data))
            if cell is not None and cell.is_best:
                bold.add((len(rows), len(cells)))
            cells.append(cell.shown() if cell else MISSING)
            if data in with_paper:
                cells.append(_printed(cell.paper if cell else None))
        rows.append(tuple(cells))
    return Table(title, tuple(heads), tuple(rows), frozenset(bold))


def _printed(paper: Published | None) -> str:
    return MISSING if paper is None else f"{paper.mean:.3f} ± {paper.std:.3f}"


def data_table(compared: Comparison, scenario: str) -> Table:
    """The same as numbers, one cell a row."""
    rows = [
        (
            metric, name, data, scenario, cell.score.mean, cell.score.std,
            cell.score.n_seeds, cell.p,
            cell.paper.mean if cell.paper else None, cell.paper.std if cell.paper else None,
        )
        for (metric, name, data), cell in compared.items()
    ]  # fmt: skip
    return Table("", COLUMNS_OF_DATA, tuple(rows))


def write(scores: Scores, scenario: str, title: str, out: Path, name: str) -> list[Path]:
    """``name.md`` and ``name.tex`` for people, ``name.csv`` for programs."""
    compared = compare(scores, scenario)
    shown = table(compared, title)
    legend = [LEGEND.format(mark=DIFFERS, level=comparison.LEVEL)]
    if any(cell.paper for cell in compared.values()):
        legend.append(ABOUT_PAPER)
    texts = {
        "md": f"{shown.to_markdown()}\n{' '.join(legend)}\n",
        "csv": data_table(compared, scenario).to_csv(),
        "tex": replace(shown, title=f"{title}. {legend[0]}").to_latex(),
    }
    make_folder(out)
    for suffix, text in texts.items():
        replace_file(out / f"{name}.{suffix}", text.encode())
    return [out / f"{name}.{suffix}" for suffix in texts]


def write_detection(making: Making, name: str, title: str) -> list[Path]:
    """NA, both F-measures and AUROC."""
    results, out = making.results, making.out
    scores = {
        (metric, cell.name, cell.data): score(metric, records(runs))
        for metric in DETECTION
        for cell, runs in results.items()
    }
    return write(scores, _scenario(results), title, out, name)


def write_forgetting(making: Making, name: str, title: str) -> list[Path]:
    """Forgetting against ``joint`` on the same streams."""
    results, out = making.results, making.out
    upper = {cell.data: records(runs) for cell, runs in results.items() if cell.learner == JOINT}
    scores = {
        (FORGETTING, cell.name, cell.data): score(FORGETTING, records(runs), upper[cell.data])
        for cell, runs in results.items()
        if cell.learner != JOINT
    }
    return write(scores, _scenario(results), title, out, name)


def _scenario(results: Results) -> str:
    return next(iter(results)).scenario
