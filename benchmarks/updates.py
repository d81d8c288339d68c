"""The update methods beside CILF and the upper bound: what they keep, and what they learn.

    CILF_DATA=... .venv/bin/python benchmarks/updates.py --seeds 0 1 2

Each cell is one ``cilf run`` on one core, kept under ``runs/commands`` with its time (finished ones
are not run again). The table is written to ``benchmarks/results/updates.{md,json}``, and the rows
of a learner to its page in ``docs/methods``. A second row of each shows it with CILF's memory, by
default with one seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from commands import ran, write_page

from cilf.benchmark.provenance import provenance
from cilf.evaluate import summarize
from cilf.report import Table

RESULTS = Path(__file__).parent / "results"
REPLAY = ("replay=true",)
UPDATERS = ["dnn-base", "dnn-l2", "dnn-ewc", "imm-mean", "imm-mode", "den"]
COLUMNS = {
    "holdout_first": "first classes", "holdout_new": "later classes", "holdout_all": "all classes",
    "forgetting": "forgetting", "forgetting_from_best": "from best", "seconds": "seconds",
}  # fmt: skip


def scores(
    learner: str, data: str, scenario: str, seed: int, changes: tuple[str, ...]
) -> dict[str, float]:
    upper = ran("joint", data, scenario, seed)
    own = ran(learner, data, scenario, seed, *changes)
    return own.summary | summarize(own.records, joint=upper.records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--replay-seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--data", nargs="+", default=["digits", "mnist"])
    parser.add_argument("--learners", nargs="+", default=["cilf", "joint", *UPDATERS])
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    seeds: dict[tuple[str, ...], list[int]]
    for data in arguments.data:
        for scenario in ("single", "multiple"):
            for learner in arguments.learners:
                seeds = {(): arguments.seeds}
                if learner in UPDATERS and arguments.replay_seeds:
                    seeds[REPLAY] = arguments.replay_seeds
                for changes, chosen in seeds.items():
                    cells = [scores(learner, data, scenario, seed, changes) for seed in chosen]
                    values = {name: [cell[name] for cell in cells] for name in COLUMNS}
                    about = {"data": data, "scenario": scenario, "learner": learner}
                    memory = learner == "cilf" or changes == REPLAY
                    rows.append(about | {"memory": memory, "seeds": chosen} | values)
    if vars(arguments) | {"seeds": None} == vars(parser.parse_args([])) | {"seeds": None}:
        write(rows, arguments)
    else:
        print(table_of(rows, "A part of the table, which is not written"))


def write(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    seeds, data = (" ".join(map(str, each)) for each in (arguments.seeds, arguments.data))
    command = f"benchmarks/updates.py --seeds {seeds} --data {data}"
    table = table_of(rows, f"Update methods: mean ± deviation over seeds {seeds}, one core")
    text = f"{table}\n{least_forgetting(rows)}\n`{command}`\n"
    (RESULTS / "updates.md").write_text(text, encoding="utf-8")
    record = {"command": command, "seeds": arguments.seeds, "rows": rows} | provenance()
    (RESULTS / "updates.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table)
    for learner in UPDATERS:
        own = [row for row in rows if row["learner"] == learner]
        write_page(learner, table_of(own, "").split("\n\n", 1)[1], command)


def table_of(rows: list[dict[str, Any]], title: str) -> str:
    lines = []
    for row in rows:
        cells = [shown(row[name], 0 if name == "seconds" else 3) for name in COLUMNS]
        names = [row["data"], row["scenario"], row["learner"]]
        lines.append((*names, memory_of(row), len(row["seeds"]), *cells))
    columns = ("data", "scenario", "learner", "memory", "seeds", *COLUMNS.values())
    return Table(title, columns, tuple(lines)).to_markdown()


def least_forgetting(rows: list[dict[str, Any]]) -> str:
    """Which of those that do not train on everything again forgets least, by both measures."""
    lines = []
    for data, scenario in dict.fromkeys((row["data"], row["scenario"]) for row in rows):
        own = [row for row in rows if (row["data"], row["scenario"]) == (data, scenario)]
        rivals = [row for row in own if row["learner"] != "joint"]
        for name in ("forgetting", "forgetting_from_best"):
            first, second = sorted(rivals, key=lambda row: mean(row[name]))[:2]
            lines.append((data, scenario, COLUMNS[name], _named(first, name), _named(second, name)))
    columns = ("data", "scenario", "measure", "least", "next")
    return Table("Who forgets least", columns, tuple(lines)).to_markdown()


def _named(row: dict[str, Any], measure: str) -> str:
    with_memory = " with memory" if row["learner"] != "cilf" and row["memory"] else ""
    seeds = f", {len(row['seeds'])} seed" if len(row["seeds"]) == 1 else ""
    return f"{row['learner']}{with_memory} ({shown(row[measure], 3)}{seeds})"


def memory_of(row: dict[str, Any]) -> str:
    if row["learner"] == "joint":
        return "everything"
    return "yes" if row["memory"] else "no"


def shown(values: list[float], digits: int) -> str:
    if digits == 0:
        return f"{mean(values):.0f}"
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"


if __name__ == "__main__":
    main()
