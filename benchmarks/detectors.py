"""The detectors beside CILF: ``cilf run`` of each on digits and MNIST, in both scenarios.

    CILF_DATA=... .venv/bin/python benchmarks/detectors.py --seeds 0 1 2

Each command has one core and is kept under ``runs/commands`` with its time (finished ones are
not run again). The table is written to ``benchmarks/results/detectors.{md,json}``, and the rows
of a learner to its page in ``docs/methods``. Seconds are of the whole command.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

from commands import ran, write_page

from cilf.benchmark.provenance import provenance
from cilf.report import Table

RESULTS = Path(__file__).parent / "results"
DETECTORS = ["iforest", "one-svm", "lacu-svm", "senc-mas", "odin-cnn", "cfo", "cpe", "dtc"]
COLUMNS = {
    "na": "NA", "macro_f": "Macro-F", "micro_f": "Micro-F", "auroc": "AUROC",
    "m_new": "M_new", "f_new": "F_new", "k_exact": "K exact", "holdout_all": "hold-out",
    "seconds": "seconds",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--data", nargs="+", default=["digits", "mnist"])
    parser.add_argument("--learners", nargs="+", default=["cilf", *DETECTORS])
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for data in arguments.data:
        for scenario in ("single", "multiple"):
            for learner in arguments.learners:
                cells = [ran(learner, data, scenario, seed).summary for seed in arguments.seeds]
                means = {name: mean(cell[name] for cell in cells) for name in COLUMNS}
                rows.append({"data": data, "scenario": scenario, "learner": learner} | means)
    if vars(arguments) | {"seeds": None} == vars(parser.parse_args([])) | {"seeds": None}:
        write(rows, arguments)
    else:
        print(table_of(rows, "A part of the table, which is not written", with_learner=True))


def write(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    given = [
        f"--{name} {' '.join(map(str, getattr(arguments, name)))}" for name in ("seeds", "data")
    ]
    command = f"benchmarks/detectors.py {' '.join(given)}"
    title = f"Detectors beside CILF: means over seeds {arguments.seeds}, one core"
    table = table_of(rows, title, with_learner=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "detectors.md").write_text(f"{table}\n`{command}`\n", encoding="utf-8")
    record = {"command": command, "seeds": arguments.seeds, "rows": rows} | provenance()
    (RESULTS / "detectors.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table)
    for learner in arguments.learners:
        own = [row for row in rows if row["learner"] == learner]
        write_page(learner, table_of(own, "", with_learner=False), command)


def table_of(rows: list[dict[str, Any]], title: str, *, with_learner: bool) -> str:
    keys = ["data", "scenario", *(["learner"] if with_learner else [])]
    lines = []
    for row in rows:
        cells = [f"{row[name]:.2f}" for name in COLUMNS if name != "seconds"]
        lines.append([*(str(row[key]) for key in keys), *cells, f"{row['seconds']:.0f}"])
    text = Table(title, [*keys, *COLUMNS.values()], lines).to_markdown()
    return text if title else text.split("\n\n", 1)[1]


if __name__ == "__main__":
    main()
