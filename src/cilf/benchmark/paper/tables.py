"""Tables 2 to 5: learners by metrics and data sets, the paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.comparison import (
    FORGETTING,
    LEVEL,
    Score,
    adjust_p_values,
    compute_p_value,
    compute_score,
    find_best,
    subtract,
)
from cilf.benchmark.paper.item import Inputs, Item, cross, describe_scenario
from cilf.benchmark.paper.published import COLUMNS, Published, find_published
from cilf.benchmark.paper.results import Cell, collect_records
from cilf.benchmark.paper.setup import CEILING, DATA, FLOOR, Row, Setup
from cilf.benchmark.results import Difference
from cilf.core.files import make_folder, replace_file
from cilf.evaluate.metric_table import METRICS
from cilf.query.query_policy import FOUND, GIVEN
from cilf.report.tables import GAP_SIGNS, MISSING, Table

H, FROM_BEST, FIRST, ALL = "plan_h", "forgetting_from_best", "holdout_first", "holdout_all"
DETECTION = (
    H, "plan_aks", "plan_aus", "plan_na", "plan_macro_f", "plan_micro_f", "plan_auroc",
)  # fmt: skip
UPDATE = (FORGETTING, FROM_BEST, FIRST, ALL)
DIFFERS, BELOW_FLOOR = "\N{DAGGER}", "\N{DOUBLE DAGGER}"
LEAST_SEEDS = 2  # for a mean to be marked as the best
NOTE = (
    "Mean ± standard deviation over seeds. The best mean is bold if it has several seeds. "
    f"Difference: from the best, paired over seeds; {DIFFERS}: p < {LEVEL:g} (Wilcoxon, paired "
    "over seeds and windows, with Holm's correction for the rows of a data set). "
)
NOTE_ON_FLOOR = (
    f"{BELOW_FLOOR}: {{}} is not above that of {FLOOR}, which finds and learns nothing, by more "
    "than the deviation, or not above it with one seed. "
)
NOTE_ON_PAPER = "The paper's numbers are from its own streams, networks and definitions."
IS_BEST, NO_RUN, NO_CEILING, NOT_RUN, UNPAIRED, UNPUBLISHED = GAP_SIGNS
GAPS = {
    IS_BEST: "it is the best itself",
    NO_RUN: "no run is finished",
    NO_CEILING: f"it is measured against {CEILING}, of which no run is finished",
    NOT_RUN: f"{CEILING} is handed all labels, so it has no runs under {FOUND}",
    UNPAIRED: "it has no seed in common with the best, or is undefined in every window",
    UNPUBLISHED: "the paper prints no number",
}
CSV_COLUMNS = (
    "metric", "protocol", "learner", "variant", "data", "scenario", "mean", "std", "n_seeds",
    "difference_from_best", "std_of_difference", "p_against_best", "p_holm",
    "paper_mean", "paper_std",
)  # fmt: skip


def detection_table(scenario: str) -> Item:
    """Compare detectors by H, AKS, AUS, NA, both F-measures and AUROC."""
    meanings = " ".join(f"{METRICS[name].title}: {METRICS[name].meaning}" for name in DETECTION)
    return Item(
        f"Novel class detection, scenario {scenario}",
        f"{describe_scenario(scenario)} The table shows how well learners tell known from novel "
        "instances, and novel classes from each other, in the whole loop: each learns what it "
        f"found. A class is novel in the window in which it starts. {meanings} More is better. "
        "Learners are in the order of H. Each rival has two rows: as published, and with CILF's "
        f"clustering space and counting rule. {FLOOR} calls nothing novel.",
        partial(_write_detection, scenario),
        lambda setup: cross(setup.detection_rows(), setup.data_for(DATA), scenario),
    )


def forgetting_table(scenario: str) -> Item:
    """Compare all systems by forgetting, against ``joint`` on the same streams."""
    return Item(
        f"Forgetting (less is better), scenario {scenario}",
        f"{describe_scenario(scenario)} Given: every learner is handed the same labelled instances "
        "of the novel classes, which isolates the update. Found: each learns what it found. "
        "Forgetting is the share of the hold-out accuracy of joint that a learner lacks, in the "
        "mean over windows. From best is the accuracy that a group of classes has lost since it "
        "was at its best. First and all classes are accuracies at the end. joint is trained on "
        "the labels of all instances. Update methods have two rows: without a memory, as "
        "published, and with the memory of the others (replay).",
        partial(_write_forgetting, scenario),
        partial(_list_update_cells, scenario),
    )


def _list_update_cells(scenario: str, setup: Setup) -> list[Cell]:
    data = setup.data_for(DATA)
    given = cross([*setup.update_rows(), Row(CEILING)], data, scenario, GIVEN)
    return given + cross(setup.update_rows(), data, scenario, FOUND)


# ----------------------------------------------------------------- scores and comparisons


@dataclass(frozen=True)
class Column:
    """A metric under one protocol."""

    metric: str
    protocol: str = FOUND

    @property
    def title(self) -> str:
        return METRICS[self.metric].title


AT_END = Column(ALL, GIVEN)
Place = tuple[str, Row]  # data set and row
Scores = Mapping[Place, Mapping[Column, Score]]


@dataclass(frozen=True)
class Comparison:
    """The scores of one row on one data set, and how they compare with the best and the floor."""

    row: Row
    data: str
    scores: Mapping[Column, Score]
    differences: Mapping[Column, Difference]  # from the row that is best in the ranking column
    p_values: Mapping[Column, float]
    adjusted: Mapping[Column, float]  # the same, corrected for the number of rows
    is_best: bool
    is_below_floor: bool


def compare(
    scores: Scores, ranking: Column, floor_column: Column | None = None
) -> list[Comparison]:
    """Compare the rows of each data set with the best of them, in the order of the ranking.

    The floor is compared by ``floor_column``, which is the ranking if it is None.
    """
    judged = floor_column or ranking
    found: list[Comparison] = []
    for data in dict.fromkeys(data for data, _ in scores):
        rows = {row: own for (name, row), own in scores.items() if name == data}
        ranked = {row: own[ranking] for row, own in rows.items() if row.learner != CEILING}
        best = find_best(ranked, ranking.metric)
        sign = -1 if METRICS[ranking.metric].higher_is_better else 1
        order = sorted(rows, key=lambda row: _nan_last(sign * rows[row][ranking].mean))
        found += _adjust([_compare(row, data, rows, best, ranking, judged) for row in order])
    return found


def _adjust(compared: Sequence[Comparison]) -> list[Comparison]:
    """Correct the p-values of a data set's rows, each column by itself."""
    by_column: dict[Column, dict[int, float]] = {}
    for number, one in enumerate(compared):
        for column, p_value in one.p_values.items():
            by_column.setdefault(column, {})[number] = p_value
    adjusted = {column: adjust_p_values(values) for column, values in by_column.items()}
    return [
        replace(one, adjusted={column: adjusted[column][number] for column in one.p_values})
        for number, one in enumerate(compared)
    ]


def _compare(
    row: Row,
    data: str,
    rows: Mapping[Row, Mapping[Column, Score]],
    best: Sequence[Row],
    ranking: Column,
    judged: Column,
) -> Comparison:
    own, rival = rows[row], rows[best[0]] if best and row not in best else {}
    rival = {column: other for column, other in rival.items() if column in own}
    differences = {column: subtract(own[column], other) for column, other in rival.items()}
    return Comparison(
        row=row,
        data=data,
        scores=own,
        differences=differences,
        p_values={c: compute_p_value(other, own[c]) for c, other in rival.items()},
        adjusted={},
        is_best=row in best and own[ranking].n_seeds >= LEAST_SEEDS,
        is_below_floor=row.learner != FLOOR and _is_below(judged, own, rows.get(Row(FLOOR), {})),
    )


def _is_below(judged: Column, own: Mapping[Column, Score], floor: Mapping[Column, Score]) -> bool:
    """Whether a score is not clearly above the floor; no, if one of them has no runs."""
    difference = subtract(own.get(judged, Score({})), floor.get(judged, Score({})))
    return not math.isnan(difference.mean) and not difference.is_clear()


def _nan_last(value: float) -> float:
    return math.inf if math.isnan(value) else value


# ----------------------------------------------------------------- tables


def make_table(
    compared: Sequence[Comparison], columns: Sequence[Column], scenario: str, title: str, note: str
) -> Table:
    """Make a table for people: a row for each learner on each data set, the best first."""
    heads: list[str] = ["data", "learner"]
    for position, column in enumerate(columns):
        heads += [_name_column(column, columns)]
        heads += ["difference"] if position == 0 else []
        heads += ["paper"] if _is_published(column, columns) else []
    rows = [_make_row(one, columns, scenario) for one in compared]
    bold = {(number, 2) for number, one in enumerate(compared) if one.is_best}
    return Table(title, tuple(heads), tuple(rows), frozenset(bold), note + explain_gaps(rows))


def explain_gaps(rows: Sequence[Sequence[str]]) -> str:
    """Say what the signs beside empty cells mean, for those that occur."""
    cells = {cell for row in rows for cell in row}
    texts = [f"{MISSING}{s}: {text}" for s, text in GAPS.items() if MISSING + s in cells]
    return f" Empty cells: {'; '.join(texts)}." if texts else ""


def _name_column(column: Column, columns: Sequence[Column]) -> str:
    several = len({each.protocol for each in columns}) > 1
    return f"{column.title}, {column.protocol}" if several else column.title


def _is_published(column: Column, columns: Sequence[Column]) -> bool:
    """Whether the paper prints this metric; its number stands beside our first column of it."""
    first = next(each for each in columns if each.metric == column.metric)
    return column == first and find_published("single", column.metric, "cilf", "mnist") is not None


def _make_row(one: Comparison, columns: Sequence[Column], scenario: str) -> tuple[str, ...]:
    mark = BELOW_FLOOR if one.is_below_floor else ""
    cells = [COLUMNS.get(one.data, data_file_name(one.data)), f"{one.row.name}{mark}"]
    for position, column in enumerate(columns):
        score = format_score(one.scores.get(column))
        gap = find_gap(one.scores, column)
        cells.append(sign_gap(score, gap))
        if position == 0:
            reason = IS_BEST if not one.differences and not gap else gap or UNPAIRED
            cells.append(sign_gap(format_difference(one, column), reason))
        if _is_published(column, columns):
            published = _format_published(_find_published(one, column, scenario))
            cells.append(sign_gap(published, UNPUBLISHED))
    return tuple(cells)


def sign_gap(text: str, gap: str) -> str:
    """Put the sign of a gap beside an empty cell."""
    return text + gap if text == MISSING else text


def find_gap(scores: Mapping[Column, Score], column: Column) -> str:
    """Find the sign of the reason why a score of a row is missing; "" if it is not."""
    score = scores.get(column)
    if score is not None and not math.isnan(score.mean):
        return ""
    beside = [each for other, each in scores.items() if other.protocol == column.protocol]
    if not beside:
        return NOT_RUN
    if not any(each.by_seed for each in beside):
        return NO_RUN
    return NO_CEILING if column.metric == FORGETTING else UNPAIRED


def format_score(score: Score | None) -> str:
    """Format a mean with its deviation.

    >>> format_score(Score({0: 0.9, 1: 0.8})), format_score(Score({0: 0.9}))
    ('0.850 ± 0.071', '0.900')
    """
    if score is None or math.isnan(score.mean):
        return MISSING
    deviation = "" if math.isnan(score.std) else f" ± {score.std:.3f}"
    return f"{score.mean:z.3f}{deviation}"


def format_difference(one: Comparison, column: Column) -> str:
    """Format the difference from the best with its deviation, and whether it is significant."""
    difference = one.differences.get(column)
    if difference is None or math.isnan(difference.mean):
        return MISSING
    deviation = "" if math.isnan(difference.std) else f" ± {difference.std:.3f}"
    return f"{difference.mean:+z.3f}{deviation}{DIFFERS if one.adjusted[column] < LEVEL else ''}"


def _find_published(one: Comparison, column: Column, scenario: str) -> Published | None:
    """Find the paper's number for a learner as published."""
    if one.row.variant:
        return None
    return find_published(scenario, column.metric, one.row.learner, one.data)


def _format_published(paper: Published | None) -> str:
    return MISSING if paper is None else f"{paper.mean:.3f} ± {paper.std:.3f}"


def make_csv_table(compared: Sequence[Comparison], scenario: str) -> Table:
    """Make a table for programs: one score in each row, as numbers."""
    rows = []
    for one in compared:
        name = Row(one.row.learner).name
        for column, score in one.scores.items():
            difference = one.differences.get(column, Difference({}))
            paper = _find_published(one, column, scenario)
            rows.append(
                (
                    column.metric, column.protocol, name, one.row.variant, one.data, scenario,
                    score.mean, score.std, score.n_seeds, difference.mean, difference.std,
                    one.p_values.get(column, math.nan), one.adjusted.get(column, math.nan),
                    paper.mean if paper else None, paper.std if paper else None,
                )
            )  # fmt: skip
    return Table("", CSV_COLUMNS, tuple(rows))


def write_table(table: Table, numbers: Table, inputs: Inputs) -> list[Path]:
    """Write ``.md`` and ``.tex`` for people, ``.csv`` for programs, ``.json`` for the report."""
    texts = {
        "md": table.to_markdown(),
        "csv": numbers.to_csv(),
        "tex": table.to_latex(),
        "json": table.to_json(),
    }
    make_folder(inputs.out)
    for suffix, text in texts.items():
        replace_file(inputs.out / f"{inputs.name}.{suffix}", text.encode())
    return [inputs.out / f"{inputs.name}.{suffix}" for suffix in texts]


def _write_detection(scenario: str, inputs: Inputs) -> list[Path]:
    columns = [Column(metric) for metric in DETECTION]
    compared = compare(_score_detection(inputs), columns[0])
    note = NOTE + NOTE_ON_FLOOR.format(columns[0].title) + NOTE_ON_PAPER
    table = make_table(compared, columns, scenario, inputs.title, note)
    return write_table(table, make_csv_table(compared, scenario), inputs)


def _write_forgetting(scenario: str, inputs: Inputs) -> list[Path]:
    columns = [Column(metric, protocol) for protocol in (GIVEN, FOUND) for metric in UPDATE]
    scores = _score_forgetting(inputs)
    compared = compare(scores, columns[0], AT_END)
    floor = NOTE_ON_FLOOR.format(_name_column(AT_END, columns))
    note = f"{NOTE}{floor}{describe_above_ceiling(scores)} {NOTE_ON_PAPER}"
    table = make_table(compared, columns, scenario, inputs.title, note)
    return write_table(table, make_csv_table(compared, scenario), inputs)


def describe_above_ceiling(scores: Scores) -> str:
    """Say which learners end with a higher accuracy on all classes than ``joint``."""
    ceilings = {data: own[AT_END] for (data, row), own in scores.items() if row.learner == CEILING}
    if not any(ceiling.n_seeds for ceiling in ceilings.values()):
        return f"No run of {CEILING} is finished: nothing is compared with it."
    above = []
    for (data, row), own in scores.items():
        ceiling = ceilings.get(data, Score({}))
        for column in (AT_END, Column(ALL, FOUND)) if row.learner != CEILING else ():
            difference = subtract(own.get(column, Score({})), ceiling)
            if difference.is_clear():
                where = f"{row.name}, {column.protocol}, on {data_file_name(data)}"
                above.append(f"{where} by {difference.format()}")
    found = "; ".join(above) or "none"
    return f"Learners that end above {CEILING} on all classes, by more than the deviation: {found}."


def _score_detection(inputs: Inputs) -> dict[Place, dict[Column, Score]]:
    return {
        (cell.data, cell.row): {
            Column(metric): compute_score(metric, collect_records(runs)) for metric in DETECTION
        }
        for cell, runs in inputs.results.items()
    }


def _score_forgetting(inputs: Inputs) -> dict[Place, dict[Column, Score]]:
    records = {cell: collect_records(runs) for cell, runs in inputs.results.items()}
    joint = {cell.data: each for cell, each in records.items() if cell.learner == CEILING}
    scores: dict[Place, dict[Column, Score]] = {}
    for cell, each in records.items():
        own = scores.setdefault((cell.data, cell.row), {})
        own |= {
            Column(metric, cell.protocol): compute_score(metric, each, joint.get(cell.data))
            for metric in UPDATE
        }
    return scores
