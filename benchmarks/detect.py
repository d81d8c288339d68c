"""What it costs to find out how many novel classes a window holds.

One learner is fitted. It then detects in the same window with the number of novel classes given and
with the number to be found (up to 10), in turns, in one process.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/detect.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from cilf import CILF
from cilf.benchmark.provenance import provenance
from cilf.data import load_dataset
from cilf.learners.cilf import Detector

RESULT = Path(__file__).parent / "results" / "detect.json"
TARGET = 2.0  # times the seconds with the number given
K_MAX = 10


class Case(NamedTuple):
    """A data set at the sizes of the scale ``cpu``, in instances of each class."""

    data: str
    backbone: str
    n_known: int
    n_novel: int
    initial: int
    window: int


CASES = {
    "mnist": Case("mnist", "convnet", 5, 3, 500, 200),
    "cifar10": Case("cifar10", "convnet", 5, 3, 500, 200),
    "cifar10 frozen": Case("cifar10", "efficientnet-lite0", 5, 3, 500, 200),
    "cifar100": Case("cifar100", "convnet", 50, 10, 150, 50),
}


def fit_learner(case: Case, epochs: int) -> tuple[CILF, np.ndarray]:
    """A learner that knows the first classes, and a window with all of them and the novel ones."""
    dataset, rng = load_dataset(case.data), np.random.default_rng(0)
    y = dataset.train.y
    classes = rng.permutation(np.array(dataset.classes))[: case.n_known + case.n_novel]
    rows = [rng.permutation(np.flatnonzero(y == label)) for label in classes]
    initial = np.concatenate([of_class[: case.initial] for of_class in rows[: case.n_known]])
    end = case.initial + case.window
    window = np.concatenate([of_class[case.initial : end] for of_class in rows])
    learner = CILF(backbone=case.backbone, epochs=epochs, detector=Detector(k_max=K_MAX))
    return learner.fit(dataset.train.X[initial], y[initial]), dataset.train.X[window]


def measure(case: Case, n_rounds: int, epochs: int) -> dict[str, Any]:
    learner, window = fit_learner(case, epochs)
    ways = {"given": case.n_novel, "found": None}
    for n_novel in ways.values():  # warms up
        found = learner.detect(window, n_novel)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(n_rounds):
        for way in ways if number % 2 else reversed(ways):
            started = time.perf_counter()
            learner.detect(window, ways[way])
            seconds[way].append(time.perf_counter() - started)
    ratios = [b / a for a, b in zip(seconds["given"], seconds["found"], strict=True)]
    return {
        "given_seconds": round(statistics.median(seconds["given"]), 3),
        "found_seconds": round(statistics.median(seconds["found"]), 3),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "n_novel_found": found.n_novel,
        "window": len(window),
        "load_average": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5, help="of the fit, which is not timed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT, help="where to write the record")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    about = provenance()
    results = {}
    for name in options.cases:
        case = CASES[name]
        results[name] = case._asdict() | measure(case, options.rounds, options.epochs)
        print(name, results[name], file=sys.stderr)
    cases = " ".join(f"'{name}'" for name in options.cases)
    record = {
        "command": f"python benchmarks/detect.py --cases {cases} --rounds {options.rounds} "
        f"--epochs {options.epochs} --threads {options.threads}",
        **about,
        "k_max": K_MAX,
        "target_ratio": TARGET,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["ratio"] <= TARGET for row in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
