"""Whether ``auto`` takes the backbone that is better on novel classes, and what that costs.

Each cell is a data set and a seed. The choice sees the labelled instances of some classes. Then
the learner is fitted on them with each backbone, and detects in windows of fresh instances with
other classes, whose number is given. Every part starts with an empty cache of features. Seconds
are of the processor.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/backbone_choice.py
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from cilf import CILF
from cilf.benchmark.provenance import provenance
from cilf.core.cache import VARIABLE
from cilf.core.files import replace_file
from cilf.learners.cilf import backbone_choice
from cilf.learners.cilf.backbone_choice import SCRATCH
from cilf.nn import pretrained

sys.path.insert(0, str(Path(__file__).parent))
from count import Case, Pool, score

RESULTS = Path(__file__).parent / "results"
ENCODER = "efficientnet-lite2"
CASES = {
    "cifar10": Case("cifar10", "auto", 5, 150, 2000, 30),
    "cifar100": Case("cifar100", "auto", 10, 60, 2000, 30, 5),
    "notmnist": Case("notmnist/notmnist.npz", "auto", 5, 150, 2000, 30),
    "omniglot": Case("omniglot/omniglot.npz", "auto", 20, 12, 2000, 8, 5),
    "mnist": Case("mnist", "auto", 5, 150, 2000, 30),
    "digits": Case("digits", "auto", 5, 60, 2000, 30),
}
NUMBERS = (1, 3, 5)  # of novel classes in a window
N_REPEATS = 2  # windows with each number


def run_cell(name: str, case: Case, seed: int) -> dict[str, Any]:
    """What was chosen, H of each backbone on novel classes, and the seconds of each part."""
    pool = Pool(case, seed)
    pool.rows = {label: rows[: case.usual] for label, rows in pool.rows.items()}
    windows = [pool.draw_novel(n, case.usual, 1.0) for n in NUMBERS for _ in range(N_REPEATS)]
    X, y = pool.X[pool.initial], pool.y[pool.initial]
    positions = np.searchsorted(np.unique(y), y)
    network = pretrained.find_candidate(X)
    hidden: dict[str, float] = {}
    with empty_cache(), measured() as choice:
        if network is not None:
            hidden = backbone_choice.compare(CILF(seed=seed), X, positions, network)
    novel, seconds = {}, {"choice": choice["seconds"]}
    for backbone in (SCRATCH, ENCODER):
        with empty_cache():
            fitted = CILF(seed=seed, backbone=backbone, memory_size=case.memory)
            with measured() as fit:
                fitted.fit(X, y)
            novel[backbone] = float(np.mean([measure(fitted, pool, rows) for rows in windows]))
            seconds[backbone] = fit["seconds"]
    chosen = max(hidden, key=lambda each: hidden[each]) if hidden else by_form(X)
    return {
        "data": name, "seed": seed, "n": len(y), "chosen": chosen, "hidden": hidden,
        "novel": novel, "seconds": seconds,
    }  # fmt: skip


def measure(learner: CILF, pool: Pool, rows: Any) -> float:
    """H of a window, with the number of novel classes given."""
    y = pool.y[rows]
    n_novel = len(set(y.tolist()) - set(pool.known))
    return score(pool, learner.detect(pool.X[rows], n_novel=n_novel), y, "")["h"]


def by_form(X: Any) -> str:
    return pretrained.choose_network("auto", X) or SCRATCH


@contextmanager
def empty_cache() -> Iterator[None]:
    with TemporaryDirectory() as folder, patch.dict(os.environ, {VARIABLE: folder}):
        yield


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Measure the seconds of the processor inside the block."""
    result: dict[str, float] = {}
    start = time.process_time()
    yield result
    result["seconds"] = round(time.process_time() - start, 2)


def write_table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """A row for each data set: means over the seeds. The costs are the largest over the seeds."""
    head = [
        "data", "labelled", "seeds", f"hidden: `{SCRATCH}`", f"hidden: `{ENCODER}`",
        f"novel: `{SCRATCH}`", f"novel: `{ENCODER}`", "`auto` goes by", "evidence: better one",
        "H lost", "form: better one", "H lost", "choice, s", "fit, s", "choice / fit, most",
    ]  # fmt: skip
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for data in CASES:
        own = [cell for cell in cells if cell["data"] == data]
        if own:
            yield f"| {data} | " + " | ".join(describe(own)) + " |"


def describe(cells: list[dict[str, Any]]) -> Iterator[str]:
    yield str(cells[0]["n"])
    yield str(len(cells))
    for kind in ("hidden", "novel"):
        for backbone in (SCRATCH, ENCODER):
            values = [cell[kind].get(backbone, np.nan) for cell in cells]
            yield "-" if np.isnan(values).any() else f"{np.mean(values):.3f}"
    is_compared = bool(cells[0]["hidden"])
    has_enough = cells[0]["n"] >= backbone_choice.MIN_INSTANCES
    yield "evidence" if is_compared and has_enough else "form"
    yield from judge(cells, [cell["chosen"] for cell in cells]) if is_compared else ("-", "-")
    in_colour = cells[0]["data"].startswith("cifar")
    yield from judge(cells, [ENCODER if in_colour else SCRATCH] * len(cells))
    choice = [cell["seconds"]["choice"] for cell in cells]
    fit = [cell["seconds"][cell["chosen"]] for cell in cells]
    yield f"{np.mean(choice):.1f}" if is_compared else "-"
    yield f"{np.mean(fit):.1f}"
    yield f"{np.max(np.divide(choice, fit)):.2f}" if is_compared else "-"


def judge(cells: list[dict[str, Any]], taken: list[str]) -> Iterator[str]:
    """How often the better backbone was taken, and the H that was lost on average."""
    lost = [
        max(cell["novel"].values()) - cell["novel"][each]
        for cell, each in zip(cells, taken, strict=True)
    ]
    yield f"{sum(each == 0 for each in lost)} of {len(cells)}"
    yield f"{np.mean(lost):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 1001, 1002])
    parser.add_argument("--out", type=Path, default=RESULTS / "backbone_choice.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pretrained.make_extractor(ENCODER, torch.device("cpu"))  # loaded once in a process
    cells: list[dict[str, Any]] = []
    if options.out.exists():  # what is there is kept
        cells = json.loads(options.out.read_text())["cells"]
    done = {(cell["data"], cell["seed"]) for cell in cells}
    for seed in options.seeds:
        for name in options.data:
            if (name, seed) not in done:
                cells.append(run_cell(name, CASES[name], seed))
                print(cells[-1], flush=True)
                document = provenance() | {"cells": cells}
                replace_file(options.out, (json.dumps(document, indent=1) + "\n").encode())
    table = "\n".join(write_table(cells)) + "\n"
    replace_file(options.out.with_suffix(".md"), table.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
