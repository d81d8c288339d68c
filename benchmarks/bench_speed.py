"""How much faster two workers run a grid than one: both in one run, on embedded digits.

    python benchmarks/bench_speed.py

Each time is of a whole benchmark in an empty folder, from starting the workers to the last cell.
The first round warms up (files, caches) and is not counted. What else the machine did meanwhile
is told by its load.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from cilf.benchmark import Bench, Grid
from cilf.benchmark.engines import LocalEngine
from cilf.benchmark.provenance import provenance

RESULT = Path(__file__).parent / "results" / "bench_speed.json"


def seconds(grid: Grid, n_workers: int) -> float:
    """To run all cells of a grid; refused if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.open(grid, folder)
        start = time.perf_counter()
        for _ in bench.run(LocalEngine(n_workers)):
            pass
        taken = time.perf_counter() - start
        if bench.count("done") < len(bench.states):
            raise SystemExit(f"a cell failed: {bench.among('failed')[0].error}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learner", default="cilf")
    parser.add_argument("--seeds", type=int, default=4, help="cells of the grid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--note", default="", help="what else the machine did")
    arguments = parser.parse_args()
    table = {"learner": arguments.learner, "data": "digits", "scale": "smoke"}
    grid = Grid.of(table | {"seed": list(range(arguments.seeds))})
    load = os.getloadavg()
    seconds(Grid.of(table | {"learner": "iforest"}), 1)
    one, many = seconds(grid, 1), seconds(grid, arguments.jobs)
    record = {
        "command": f"python benchmarks/bench_speed.py --learner {arguments.learner} "
        f"--seeds {arguments.seeds} --jobs {arguments.jobs}",
        **provenance(),
        "note": arguments.note,
        "load_before": [round(value, 2) for value in load],
        "load_after": [round(value, 2) for value in os.getloadavg()],
        "cells": arguments.seeds,
        "seconds_jobs_1": round(one, 2),
        f"seconds_jobs_{arguments.jobs}": round(many, 2),
        "ratio": round(one / many, 3),
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
