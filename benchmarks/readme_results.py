"""Writes the results in README.md, docs/paper.md and docs/benchmark.md from the records.

    python benchmarks/readme_results.py             after 'cilf paper ... --plot' wrote the tables
    python benchmarks/readme_results.py --check     says whether the pages are up to date

What stands between two marks of a page is replaced; the rest is written by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cilf.benchmark import RunConfig
from cilf.benchmark.bench import CELLS
from cilf.benchmark.grid import GridCell
from cilf.benchmark.paper.comparison import FORGETTING, Score, compute_score, find_best
from cilf.benchmark.paper.item import MULTIPLE, cross
from cilf.benchmark.paper.items import ITEMS
from cilf.benchmark.paper.published import COLUMNS
from cilf.benchmark.paper.results import Cell, Results, collect_records, read_results
from cilf.benchmark.paper.setup import CEILING, DATA, FLOOR, OURS, RIVALS, Row, Setup
from cilf.benchmark.paper.tables import H, format_score
from cilf.core.files import replace_file
from cilf.evaluate.metrics import mean
from cilf.query.query_policy import FOUND, GIVEN
from cilf.report.tables import MISSING, Table

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "benchmarks" / "results" / "paper-cpu"
PROFILES = ROOT / "benchmarks" / "results" / "where_time_goes.json"
README, PAPER = ROOT / "README.md", ROOT / "docs" / "paper.md"
BENCHMARK = ROOT / "docs" / "benchmark.md"
STEPS = ("fit", "detection", "update", "hold-out", "map", "checkpoint", "other", "training")
BEST_RIVALS = 4
LEAST_SEEDS = 2  # for a mean to be bold
SETUP = Setup("cpu")


def read_runs(cells: Sequence[Cell]) -> Results:
    """Read the recorded runs of these cells."""

    def find_folder(config: RunConfig) -> Path:
        return RECORDS / CELLS / GridCell.of(config).folder

    return read_results(cells, SETUP, find_folder)


# ----------------------------------------------------------------- the table of README


def compute_scores() -> dict[str, dict[str, Score]]:
    """Compute H and forgetting in scenario multiple, by learner and by column of the table."""
    rows = [*SETUP.rows_for([*OURS, *RIVALS]), Row(FLOOR)]
    cells = cross(rows, DATA, MULTIPLE) + cross([*rows, Row(CEILING)], DATA, MULTIPLE, GIVEN)
    runs = read_runs(cells)
    joint = {cell.data: runs[cell] for cell in cells if cell.learner == CEILING}
    scores: dict[str, dict[str, Score]] = {}
    for cell in cells:
        metric = H if cell.protocol == FOUND else FORGETTING
        upper = collect_records(joint[cell.data])
        score = compute_score(metric, collect_records(runs[cell]), upper)
        scores.setdefault(cell.name, {})[name_column(cell.data, metric)] = score
    return scores


def name_column(data: str, metric: str) -> str:
    return f"{COLUMNS[data]}, {'H' if metric == H else 'forgetting'}"


def make_readme_table() -> Table:
    """Make the table: our learners, the best rivals by H, the upper bound and the floor."""
    scores = compute_scores()
    heads = [name_column(data, metric) for data in DATA for metric in (H, FORGETTING)]
    rivals = sorted(RIVALS, key=lambda name: rate_rival(scores[name]), reverse=True)[:BEST_RIVALS]
    names = [*reversed(OURS), *rivals, CEILING, FLOOR]
    rows = [
        (f"`{name}`", *(format_score(scores[name].get(head)) for head in heads)) for name in names
    ]
    bold = {
        (names.index(name), 1 + place)
        for place, head in enumerate(heads)
        for name in find_bold(scores, names, head)
    }
    return Table("", ("learner", *heads), tuple(rows), frozenset(bold))


def rate_rival(own: Mapping[str, Score]) -> tuple[int, float]:
    """Return the number of data sets that have runs, and the mean of H over them."""
    values = [score.mean for head, score in own.items() if head.endswith("H") and score.n_seeds]
    return len(values), mean(values) if values else 0.0


def find_bold(
    scores: Mapping[str, Mapping[str, Score]], names: Sequence[str], head: str
) -> list[str]:
    """Find the best rows of a column; none if a row has only one seed where others have more."""
    metric = H if head.endswith("H") else FORGETTING
    own = {name: scores[name][head] for name in names if head in scores[name] and name != CEILING}
    best = find_best(own, metric)
    return [name for name in best if own[name].n_seeds >= LEAST_SEEDS]


def make_readme_part() -> str:
    return to_lines(make_readme_table())


# ----------------------------------------------------------------- the parts of docs/paper.md


def make_claims_part() -> str:
    """Return the table of claims as the records have it."""
    text = (RECORDS / "claims.json").read_text(encoding="utf-8")
    return to_lines(Table.from_json(text))


def make_runs_part() -> str:
    """Count the finished runs of each row and data set, of those that all items take."""
    cells = list(dict.fromkeys(c for item in ITEMS.values() for c in item.cells(SETUP)))
    runs = read_runs(cells)
    counts: dict[str, dict[str, list[int]]] = {}
    for cell in cells:
        count = counts.setdefault(name_runs(cell), {}).setdefault(cell.data, [0, 0])
        count[0] += len(runs[cell])
        count[1] += len(SETUP.all_seeds)
    rows = [
        (name, *(f"{own[d][0]} of {own[d][1]}" if d in own else MISSING for d in DATA))
        for name, own in counts.items()
    ]
    heads = ("runs", *(COLUMNS[data] for data in DATA))
    return to_lines(Table("", heads, tuple(rows)))


def name_runs(cell: Cell) -> str:
    """Name the group of runs that a cell is counted in."""
    if cell.query != 1:
        return f"{cell.name}, figure 9"
    if "loss__lambda1" in dict(cell.parameters):
        return f"{cell.name}, figure 10"
    return cell.name


# ----------------------------------------------------------------- the parts of docs/benchmark.md


def make_profile_part() -> str:
    """Return the share of each step in a run, by learner."""
    profiles = json.loads(PROFILES.read_text(encoding="utf-8"))["profiles"].values()
    rows = [
        (f"`{one['learner']}`", str(one["cpu_seconds"]), *(f"{one[s]:.0%}" for s in STEPS))
        for one in sorted(profiles, key=lambda one: one["cpu_seconds"])
    ]
    return to_lines(Table("", ("learner", "seconds", *STEPS), tuple(rows)))


def make_saved_part() -> str:
    """Return the seconds of both protocols before and after."""
    compared = json.loads(PROFILES.read_text(encoding="utf-8"))["compared"].values()
    rows = [
        (
            f"`{one['learner']}`", str(one["before"]), str(one["after"]), f"{one['ratio']:.2f}",
            "the same" if one["same_records"] else "others",
        )
        for one in sorted(compared, key=lambda one: -one["ratio"])
    ]  # fmt: skip
    heads = ("learner", "before", "after", "times as fast", "records")
    return to_lines(Table("", heads, tuple(rows)))


# ----------------------------------------------------------------- pages


def to_lines(table: Table) -> str:
    """Return the lines of a table; names of learners are code, which a table would escape."""
    lines = table.to_markdown().splitlines()[2:]
    return "\n".join(line.replace("\\`", "`") for line in lines)


def replace_part(page: str, name: str, content: str) -> str:
    """Replace what stands between the marks of a part."""
    begin, end = (
        f"<!-- {name}: written by benchmarks/readme_results.py -->",
        f"<!-- end of {name} -->",
    )
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the page has no part {name!r}: put {begin} and {end} into it.")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def make_readme(page: str) -> str:
    return replace_part(page, "results", make_readme_part())


def make_paper(page: str) -> str:
    return replace_part(replace_part(page, "claims", make_claims_part()), "runs", make_runs_part())


def make_benchmark(page: str) -> str:
    page = replace_part(page, "profiles", make_profile_part())
    return replace_part(page, "saved", make_saved_part())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    pages = ((README, make_readme), (PAPER, make_paper), (BENCHMARK, make_benchmark))
    for path, make in pages:
        page = path.read_text(encoding="utf-8")
        made = make(page)
        if made != page and check:
            sys.exit(f"{path.name} is not what the records say: run {Path(__file__).name}.")
        if made != page:
            replace_file(path, made.encode())


if __name__ == "__main__":
    main()
