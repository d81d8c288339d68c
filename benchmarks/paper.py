"""The runs and artefacts of ``cilf paper`` that are kept here, and the README's results of them.

    cilf paper all --scale smoke --out runs/paper-smoke
    .venv/bin/python benchmarks/paper.py smoke --take runs/paper-smoke
    cilf paper table2 table3 table4 table5 --scale cpu --out runs/paper-cpu --data ... --learner ...
    .venv/bin/python benchmarks/paper.py cpu --take runs/paper-cpu

Records of the finished runs are taken into ``benchmarks/results/paper-SCALE``, with the tables and
figures that were made of them. For ``cpu``, of which a part is run at a time, the tables are made
anew of all records that are kept, and the README's results, too.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

from marked import replace_marked

from cilf.benchmark import RunConfig
from cilf.benchmark.bench import CELLS
from cilf.benchmark.grid import GridCell
from cilf.benchmark.paper.comparison import FORGETTING, Score, best, score
from cilf.benchmark.paper.make import chosen, make
from cilf.benchmark.paper.published import COLUMNS
from cilf.benchmark.paper.results import Cell, Results, finished, records
from cilf.benchmark.paper.setup import DATA, JOINT, SYSTEMS, Setup
from cilf.evaluate.records import RunFolder
from cilf.report import Table
from cilf.report.paper_items import INDEX
from cilf.report.tables import MISSING

RESULTS = Path(__file__).parent / "results"
CPU = RESULTS / "paper-cpu"
README = Path(__file__).parent.parent / "README.md"
SCENARIOS = ("single", "multiple")
SETUP = Setup.of(scale="cpu")
KEPT = ("run.json", "records.jsonl")  # of a run; its models and drawings are large

Column = tuple[str, str]  # data set and scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale", choices=["smoke", "cpu"])
    parser.add_argument("--take", type=Path, help="a folder that `cilf paper` made")
    arguments = parser.parse_args()
    kept = RESULTS / f"paper-{arguments.scale}"
    if arguments.take is not None:
        take_records(arguments.take, kept)
    if arguments.scale == "cpu":
        for made in make(chosen(["table2", "table3", "table4", "table5"]), SETUP, CPU):
            print(made.item.name, *(path.name for path in made.files))
        replace_marked(README, "paper", summary())
    elif arguments.take is not None:
        take_artefacts(arguments.take, kept)


def take_records(runs: Path, kept: Path) -> None:
    """Keep the records of what is finished."""
    for folder in sorted((runs / CELLS).iterdir()):
        if RunFolder(folder).finished():
            for name in KEPT:
                copy(folder / name, kept / CELLS / folder.name / name)


def take_artefacts(runs: Path, kept: Path) -> None:
    """Keep the tables and figures."""
    items = json.loads((runs / INDEX).read_text(encoding="utf-8"))["items"]
    for name in (INDEX, *(file for item in items.values() for file in item["files"])):
        copy(runs / name, kept / name)


def copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def summary() -> str:
    """Two tables, and where CILF is not the first."""
    cells = [Cell(n, d, s) for d in DATA for s in SCENARIOS for n in (*SYSTEMS, JOINT)]
    results = finished(cells, SETUP, place)
    na, lost = scores(results, "na"), scores(results, FORGETTING)
    parts = [
        "NA, more is better:\n", shown(na, "na"), behind(na, "na"),
        "Forgetting, less is better:\n", shown(lost, FORGETTING), behind(lost, FORGETTING),
    ]  # fmt: skip
    return "\n".join(parts).strip()


def place(config: RunConfig) -> Path:
    return CPU / CELLS / GridCell.of(config).folder


def scores(results: Results, metric: str) -> dict[Column, dict[str, Score]]:
    """By column and learner; those for which there is no run are left out."""
    columns: dict[Column, dict[str, Score]] = {}
    for cell, runs in results.items():
        upper = records(results[cell._replace(learner=JOINT)])
        value = score(metric, records(runs), upper)
        if cell.learner != JOINT and not math.isnan(value.mean):
            columns.setdefault((cell.data, cell.scenario), {})[cell.learner] = value
    return columns


def shown(columns: Mapping[Column, Mapping[str, Score]], metric: str) -> str:
    heads = [f"{COLUMNS[data]} {scenario}" for data, scenario in columns]
    learners = [name for name in SYSTEMS if any(name in each for each in columns.values())]
    rows, bold = [], set()
    for row, name in enumerate(learners):
        values = [each.get(name) for each in columns.values()]
        rows.append((name, *(one(value) for value in values)))
        bold |= {
            (row, 1 + number)
            for number, each in enumerate(columns.values())
            if name in best(each, metric)
        }
    return Table("", ("learner", *heads), tuple(rows), frozenset(bold)).to_markdown().lstrip("*\n")


def one(value: Score | None) -> str:
    if value is None:
        return MISSING
    return f"{value.mean:z.3f}" + ("" if math.isnan(value.std) else f" ± {value.std:.3f}")


def behind(columns: Mapping[Column, Mapping[str, Score]], metric: str) -> str:
    """A sentence on who is better than CILF where, on the seeds that both ran."""
    lost = [
        f"{COLUMNS[data]} {scenario} ({rivals})"
        for (data, scenario), each in columns.items()
        if (rivals := ", ".join(better_ones(each, metric)))
    ]
    if not lost:
        return "On the seeds that both ran, no other is better than `cilf` anywhere.\n"
    return f"Better than `cilf`, on the seeds that both ran: {'; '.join(lost)}.\n"


def better_ones(scores: Mapping[str, Score], metric: str) -> list[str]:
    own = scores["cilf"].by_seed if "cilf" in scores else {}
    found = []
    for name, rival in scores.items():
        shared = sorted(own.keys() & rival.by_seed.keys())
        ahead = sum(rival.by_seed[seed] - own[seed] for seed in shared)
        if (ahead < 0) if metric == FORGETTING else (ahead > 0):
            values = (sum(each[s] for s in shared) / len(shared) for each in (rival.by_seed, own))
            found.append(f"`{name}` with {' against '.join(f'{value:z.3f}' for value in values)}")
    return found


if __name__ == "__main__":
    main()
