"""How much faster two workers run the cells of the paper at scale ``smoke`` than one does.

    python benchmarks/bench_speed.py

Each time covers a whole benchmark in an empty folder, from starting the workers to the last cell.
One cell warms up files and caches and is not counted. The record holds the machine's load.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cilf.benchmark import Bench, Grid
from cilf.benchmark.engines import LocalEngine
from cilf.benchmark.paper.items import select_items
from cilf.benchmark.paper.make import open_bench
from cilf.benchmark.paper.setup import Setup
from cilf.benchmark.provenance import provenance

RESULT = Path(__file__).parent / "results" / "bench_speed.json"


def time_bench(open_in: Callable[[Path], Bench], n_workers: int) -> float:
    """Time all cells of a benchmark; exit if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        bench = open_in(Path(folder))
        start = time.perf_counter()
        for _ in bench.run(LocalEngine(n_workers)):
            pass
        taken = time.perf_counter() - start
        if bench.count("done") < len(bench.states):
            raise SystemExit(f"a cell failed: {bench.with_status('failed')[0].error}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", nargs="+", default=["all"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--note", default="", help="what else the machine did")
    arguments = parser.parse_args()
    open_in = partial(open_bench, select_items(arguments.items), Setup.of(scale="smoke"))
    warm_up = Grid.of({"learner": "iforest", "data": "digits"})
    time_bench(partial(Bench.open, warm_up), 1)
    load = os.getloadavg()
    one, many = time_bench(open_in, 1), time_bench(open_in, arguments.jobs)
    items = " ".join(arguments.items)
    record = {
        "command": f"python benchmarks/bench_speed.py --items {items} --jobs {arguments.jobs}",
        **provenance(),
        "note": arguments.note,
        "load_before": [round(value, 2) for value in load],
        "load_after": [round(value, 2) for value in os.getloadavg()],
        "cells": len(open_in(Path("runs/none")).states),
        "seconds_jobs_1": round(one, 2),
        f"seconds_jobs_{arguments.jobs}": round(many, 2),
        "ratio": round(one / many, 3),
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
