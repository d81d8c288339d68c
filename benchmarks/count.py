"""How often the number of novel classes is found, and how many known instances are called novel.

    .venv/bin/python benchmarks/count.py --data mnist cifar10 --seeds 100 101 102 103

Each seed makes one fit on five classes and, for each number of novel classes from 0 to 5, two
windows whose classes are of one size and two whose sizes differ up to tenfold. Results are
written to ``benchmarks/results/count.{md,json}``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from study import SOURCES, FittedOnce, Source

from cilf.benchmark.provenance import provenance
from cilf.benchmark.scales import setting
from cilf.core.random import generator
from cilf.core.types import Array
from cilf.evaluate import metrics
from cilf.report import Table

RESULTS = Path(__file__).parent / "results"
N_KNOWN, MOST_NOVEL, REPEATS = 5, 5, 2
SIZES = {"cpu": (500, 200), "smoke": (80, 28)}  # of a class: initial, in a window
KINDS = {"equal": 1.0, "tenfold": 10.0}


class Problem(NamedTuple):
    """Rows of a data set: a start, and windows with the number of novel classes they hold."""

    initial: Array
    windows: list[tuple[str, int, Array]]


def make_problem(y: Array, seed: int, scale: str) -> Problem:
    rng = generator(seed, "count")
    order = rng.permutation(np.unique(y))
    rows = {label: rng.permutation(np.flatnonzero(y == label)) for label in order}
    n_initial, n_window = SIZES[scale]
    known, novel = order[:N_KNOWN], order[N_KNOWN:]
    windows = []
    for kind, ratio in KINDS.items():
        for n_novel in [*range(MOST_NOVEL + 1)] * REPEATS:
            present = [*known, *rng.permutation(novel)[:n_novel]]
            sizes = (n_window * ratio ** -rng.random(len(present))).round().astype(int)
            drawn = [
                rng.permutation(rows[label][n_initial if label in known else 0 :])[:size]
                for label, size in zip(present, sizes, strict=True)
            ]
            windows.append((kind, n_novel, np.concatenate(drawn)))
    return Problem(np.concatenate([rows[label][:n_initial] for label in known]), windows)


def measured(source: Source, seed: int, changes: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One line for each window: the true and the found number, and who was called novel."""
    X, y = source.load().train
    problem = make_problem(y, seed, source.scale)
    of_scale = setting(source.scale, source.name).learner.items()
    budgets = {name: value for name, value in of_scale if name in FittedOnce.parameter_names()}
    budgets |= dict(source.parameters)
    learner = FittedOnce(**(budgets | {"seed": seed} | changes))
    learner.fit(X[problem.initial], y[problem.initial])
    for kind, n_novel, rows in problem.windows:
        found = learner.detect(X[rows])
        known = np.isin(y[rows], learner.classes_)
        line = {"seed": seed, "kind": kind, "true": n_novel, "found": found.n_novel}
        line |= {"false_novel": float(found.is_novel[known].mean())}
        if n_novel:
            line |= {"auroc": metrics.auroc(found.novelty, ~known)}
        yield line


def summary(lines: list[dict[str, Any]]) -> dict[str, float]:
    errors = [line["found"] - line["true"] for line in lines]
    quiet = [line["found"] == 0 for line in lines if line["true"] == 0]
    loud = [line for line in lines if line["true"] > 0]
    return {
        "windows": len(lines),
        "exact": mean(error == 0 for error in errors),
        "within one": mean(abs(error) <= 1 for error in errors),
        "mean error": mean(errors),
        "none found when there is none": mean(quiet),
        "known called novel, beside novel ones": mean(line["false_novel"] for line in loud),
        "AUROC": mean(line["auroc"] for line in loud),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = ["digits", "mnist", "cifar10", "cifar10-pretrained"]
    parser.add_argument("--data", nargs="+", choices=data, default=data)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102, 103])
    parser.add_argument("--no-tuning", action="store_true", help="count only: faster")
    parser.add_argument("--name", default="count", help="of the files that are written")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    changes = {"detect_epochs": 0} if arguments.no_tuning else {}
    results = []
    for name in arguments.data:
        lines = []
        for seed in arguments.seeds:
            print(name, seed, file=sys.stderr, flush=True)
            lines += list(measured(SOURCES[name], seed, changes))
        for kind in KINDS:
            chosen = [line for line in lines if line["kind"] == kind]
            results.append({"data": name, "sizes": kind, **summary(chosen), "lines": chosen})
    columns = [name for name in results[0] if name != "lines"]
    rows = tuple(tuple(result[name] for name in columns) for result in results)
    table = Table("The number of novel classes", tuple(columns), rows).to_markdown()
    about = {"seeds": arguments.seeds, "changes": changes, "results": results}
    RESULTS.mkdir(exist_ok=True)
    record = json.dumps(about | provenance(), indent=1)
    (RESULTS / f"{arguments.name}.json").write_text(record + "\n")
    (RESULTS / f"{arguments.name}.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
