"""Ranks of all systems over all columns of the tables, with critical differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from cilf.benchmark.paper.comparison import FORGETTING, LEVEL, compute_score
from cilf.benchmark.paper.item import MULTIPLE, SINGLE, Inputs, Item, cross
from cilf.benchmark.paper.panels import OURS, RankLine, plot_ranks, write_images
from cilf.benchmark.paper.results import Cell, Results, collect_records
from cilf.benchmark.paper.setup import CEILING, DATA, DETECTORS, FLOOR, SYSTEMS, Row, Setup
from cilf.benchmark.paper.tables import Column, H, write_table
from cilf.core.types import Floats
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.metrics import mean
from cilf.query.query_policy import FOUND, GIVEN
from cilf.report.tables import GAP_SIGNS, MISSING, Table

LEAST_SYSTEMS, LEAST_STREAMS = 3, 2  # for a test
DETECTION = tuple(Column(m) for m in (H, "plan_na", "plan_macro_f", "plan_micro_f", "plan_auroc"))
UPDATE = (Column(FORGETTING, GIVEN), Column(FORGETTING, FOUND))
PLOTTED = (DETECTION[0], UPDATE[0])
FEW_RUNS, NO_DETECTOR = GAP_SIGNS[:2]
NOTE = (
    "Mean rank of each system, 1 is the best. A rank is among the systems of the column on one "
    "stream, which is a data set, a scenario and a seed; only streams that all of them have count. "
    "Friedman's test asks whether the systems differ at all. Two systems differ with "
    f"p < {LEVEL:g} if their mean ranks differ by more than the critical difference (Nemenyi). "
    "Seeds of one data set are not independent data sets: read the test as a hint."
)

Stream = tuple[str, str, int]  # data set, scenario and seed
Values = Mapping[str, Mapping[Stream, float]]
"""A metric of each system on each stream."""


def rank_table() -> Item:
    """Rank all systems over all data sets, scenarios, seeds and metrics."""
    return Item(
        "Ranks of all systems",
        "No table of the paper: it sums tables 2 to 5 up. The plot shows mean ranks, the best to "
        "the left; a bar joins systems whose ranks do not differ by more than the critical "
        "difference. Update methods detect nothing of their own, so they are ranked by forgetting "
        "alone. All systems are as published.",
        _write_ranks,
        list_cells,
    )


def list_cells(setup: Setup) -> list[Cell]:
    """List the cells of all systems as published, and of the upper bound."""
    data, rows = setup.data_for(DATA), [*setup.rows_for(SYSTEMS), Row(FLOOR)]
    cells: list[Cell] = []
    for scenario in (SINGLE, MULTIPLE):
        cells += cross(rows, data, scenario)
        cells += cross([*rows, Row(CEILING)], data, scenario, GIVEN)
    return cells


# ----------------------------------------------------------------- ranks and tests


class Block(NamedTuple):
    """The systems and the streams on which each of them has a value."""

    systems: tuple[str, ...]
    streams: tuple[Stream, ...]


def choose_block(values: Values) -> Block:
    """Choose the systems and streams with the most values that leave no gap.

    If ``cilf`` has values, only its streams count: others do not tell how it compares. Systems are
    added in the order of their number of streams. Of equally large blocks, that with more systems
    is taken.

    >>> one, other = ("mnist", "single", 1000), ("mnist", "single", 1001)
    >>> choose_block({"a": {one: 1.0, other: 2.0}, "b": {one: 1.0, other: 1.0}, "c": {one: 3.0}})
    Block(systems=('a', 'b'), streams=(('mnist', 'single', 1000), ('mnist', 'single', 1001)))
    """
    wanted = values.get(OURS) or {stream for own in values.values() for stream in own}
    values = {name: {s: v for s, v in own.items() if s in wanted} for name, own in values.items()}
    order = sorted(values, key=lambda name: (-len(values[name]), name != OURS))
    best = Block((), ())
    for n_systems in range(1, len(order) + 1):
        systems = order[:n_systems]
        streams = [s for s in values[systems[0]] if all(s in values[name] for name in systems)]
        if streams and n_systems * len(streams) >= len(best.systems) * len(best.streams):
            best = Block(tuple(systems), tuple(streams))
    return best


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of systems, and how far apart two of them have to be to differ."""

    ranks: Mapping[str, float]  # by system, the best first
    n_streams: int
    p_value: float  # that the systems do not differ; NaN for too few systems or streams
    critical: float  # difference; NaN likewise

    def groups(self) -> list[tuple[str, ...]]:
        """Return the largest groups of systems that do not differ from each other.

        >>> Ranking({"a": 1.0, "b": 1.5, "c": 2.4}, 9, 0.01, 1.0).groups()
        [('a', 'b'), ('b', 'c')]
        """
        names, found = list(self.ranks), list[tuple[str, ...]]()
        for first, name in enumerate(names):
            near = [n for n in names[first:] if self.ranks[n] - self.ranks[name] <= self.critical]
            if len(near) > 1 and not (found and set(near) <= set(found[-1])):
                found.append(tuple(near))
        return found

    def to_line(self) -> RankLine:
        """Return what is plotted of it."""
        return RankLine(self.ranks, self.groups(), self.critical)


def rank_systems(values: Values, *, higher_is_better: bool) -> Ranking:
    """Rank the systems of the largest block of values by their mean rank over its streams."""
    block = choose_block(values)
    if not block.systems:
        return Ranking({}, 0, math.nan, math.nan)
    sign = -1.0 if higher_is_better else 1.0
    scores = np.array([[sign * values[name][s] for name in block.systems] for s in block.streams])
    ranks = rankdata(scores, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    by_name = {block.systems[place]: float(ranks[place]) for place in order}
    n_streams, n_systems = scores.shape
    if n_systems < LEAST_SYSTEMS or n_streams < LEAST_STREAMS:
        return Ranking(by_name, n_streams, math.nan, math.nan)
    critical = compute_critical_difference(n_systems, n_streams)
    return Ranking(by_name, n_streams, _test_friedman(scores), critical)


def _test_friedman(scores: Floats) -> float:
    """Test whether the columns differ; 1 if all of them are equal in every row."""
    if (scores == scores[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*scores.T).pvalue)


def compute_critical_difference(n_systems: int, n_streams: int) -> float:
    """Compute the difference of mean ranks above which two systems differ (Nemenyi).

    >>> round(compute_critical_difference(5, 30), 3)
    1.114
    """
    quantile = studentized_range.ppf(1 - LEVEL, n_systems, math.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(n_systems * (n_systems + 1) / (6 * n_streams)))


# ----------------------------------------------------------------- files


def _write_ranks(inputs: Inputs) -> list[Path]:
    columns = (*DETECTION, *UPDATE)
    rankings = {column: _rank_column(inputs.results, column) for column in columns}
    panels = {_name(c): rankings[c].to_line() for c in PLOTTED if rankings[c].ranks}
    table = make_rank_table(rankings, inputs.title)
    written = write_table(table, _make_csv_table(rankings), inputs)
    return written + (write_images(plot_ranks(panels), inputs.out, inputs.name) if panels else [])


def _rank_column(results: Results, column: Column) -> Ranking:
    values = collect_values(results, column)
    return rank_systems(values, higher_is_better=METRICS[column.metric].higher_is_better)


def collect_values(results: Results, column: Column) -> Values:
    """Collect a metric of each system on each stream, without those that are undefined.

    Detection is compared among detectors and the floor.
    """
    joint = {(c.data, c.scenario): runs for c, runs in results.items() if c.learner == CEILING}
    updaters = {*SYSTEMS} - {*DETECTORS}
    values: dict[str, dict[Stream, float]] = {}
    for cell, runs in results.items():
        skipped = column in DETECTION and cell.learner in updaters
        if cell.protocol != column.protocol or cell.learner == CEILING or skipped:
            continue
        upper = collect_records(joint.get((cell.data, cell.scenario), {}))
        score = compute_score(column.metric, collect_records(runs), upper)
        found = {(cell.data, cell.scenario, s): v for s, v in score.by_seed.items()}
        values.setdefault(cell.name, {}).update(
            {stream: value for stream, value in found.items() if not math.isnan(value)}
        )
    return values


def _name(column: Column) -> str:
    title = METRICS[column.metric].title
    return f"{title}, {column.protocol}" if column in UPDATE else title


def make_rank_table(rankings: Mapping[Column, Ranking], title: str) -> Table:
    """Make a table with a row for each system: its mean rank in each column and over them."""
    heads = ["learner", *map(_name, DETECTION), "detection", *map(_name, UPDATE), "update"]
    systems = dict.fromkeys(name for ranking in rankings.values() for name in ranking.ranks)
    rows = {}
    for name in systems:
        own = {c: ranking.ranks.get(name, math.nan) for c, ranking in rankings.items()}
        groups = [[own[column] for column in group] for group in (DETECTION, UPDATE)]
        # A mean over columns is of systems that have all of them.
        cells = [value for group in groups for value in (*group, sum(group) / len(group))]
        rows[name] = cells
    order = sorted(rows, key=lambda name: mean(v for v in (rows[name][5], rows[name][-1])))
    texts = [(name, *(_format_rank(name, value) for value in rows[name])) for name in order]
    return Table(title, tuple(heads), tuple(texts), note=f"{NOTE} {_describe(rankings, texts)}")


def _format_rank(name: str, value: float) -> str:
    if not math.isnan(value):
        return f"{value:.2f}"
    return MISSING + (NO_DETECTOR if name in SYSTEMS and name not in DETECTORS else FEW_RUNS)


def _describe(rankings: Mapping[Column, Ranking], rows: Sequence[tuple[str, ...]]) -> str:
    """Say of each column how many systems and streams it has, and the result of the tests."""
    tests = [f"{_name(column)}: {describe_test(ranking)}" for column, ranking in rankings.items()]
    gaps = {
        FEW_RUNS: "too few of its runs are finished",
        NO_DETECTOR: "it is an update method, or too few of its runs are finished",
    }
    shown = {cell for row in rows for cell in row}
    notes = [f"{MISSING}{sign}: {text}" for sign, text in gaps.items() if MISSING + sign in shown]
    return ". ".join(["; ".join(tests), *notes]) + "."


def describe_test(ranking: Ranking) -> str:
    """Describe what was ranked and tested in a column.

    >>> describe_test(Ranking({"a": 1.0, "b": 2.0, "c": 3.0}, 8, 0.0003, 1.17))
    '3 systems on 8 streams, p = 0.0003, critical difference 1.17'
    >>> describe_test(Ranking({"a": 1.0}, 8, float("nan"), float("nan")))
    '1 systems on 8 streams, too few for a test'
    """
    size = f"{len(ranking.ranks)} systems on {ranking.n_streams} streams"
    if math.isnan(ranking.p_value):
        return f"{size}, too few for a test"
    return f"{size}, p = {ranking.p_value:.1g}, critical difference {ranking.critical:.2f}"


def _make_csv_table(rankings: Mapping[Column, Ranking]) -> Table:
    heads = (
        "metric", "protocol", "learner", "rank", "n_systems", "n_streams", "p_friedman",
        "critical_difference",
    )  # fmt: skip
    rows = [
        (
            column.metric, column.protocol, name, rank, len(ranking.ranks), ranking.n_streams,
            ranking.p_value, ranking.critical,
        )
        for column, ranking in rankings.items()
        for name, rank in ranking.ranks.items()
    ]  # fmt: skip
    return Table("", heads, tuple(rows))
