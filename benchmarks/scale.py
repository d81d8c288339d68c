"""What a window, a fit and their steps cost by the number of rows: seconds and memory.

Each point runs in a process of its own, on one core. Seconds are those of the processor, which
other work on the machine hardly changes. Memory is the peak of the process (``getrusage``) beyond
what it held when the data were there. Rows have 64 numbers: five known and three novel normal
classes.

    CILF_DATA=... python benchmarks/scale.py
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from cilf.benchmark.provenance import provenance

RESULT = Path(__file__).parent / "results" / "scale.json"
FIGURE = Path(__file__).parent.parent / "docs" / "images" / "scale.svg"
WIDTH, N_KNOWN, N_CLASSES, SPREAD = 64, 5, 8, 0.8
FITTED_ROWS, EPOCHS = 2500, 3
POINTS = {
    "detect": (1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 300_000, 1_000_000),
    "predict": (10_000, 100_000, 1_000_000),
    "fit": (1_000, 10_000, 100_000, 1_000_000),
    "update": (100, 1_000, 10_000),
    "read": (10_000, 100_000),
    "features": (200,),
    "agree": (25_000, 35_000),
}
MOST_SECONDS, MOST_GIGABYTES = 60.0, 1.0  # of a detection of a million rows
FROZEN = "efficientnet-lite0"


def draw(n: int, classes: range, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of normal classes, and the class of each."""
    rng = np.random.default_rng(seed)
    centres = SPREAD * np.random.default_rng(0).normal(size=(N_CLASSES, WIDTH)).astype(np.float32)
    X, y = rng.standard_normal((n, WIDTH), dtype=np.float32), rng.integers(0, len(classes), n)
    for label in classes:
        X[y == label] += centres[label]
    return X, y


def fit_learner() -> Any:
    from cilf import CILF

    return CILF(epochs=EPOCHS).fit(*draw(FITTED_ROWS, range(N_KNOWN), 1))


def resident() -> float:
    """The megabytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    before, started = resident(), time.process_time()
    result = work()
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return result, {"seconds": round(seconds, 3), "megabytes": round(peak - before)}


@contextmanager
def timed(steps: dict[str, tuple[Any, str]]) -> Iterator[dict[str, float]]:
    """The seconds inside each of these functions, by step."""
    seconds: dict[str, float] = defaultdict(float)

    def wrap(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            started = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                seconds[step] += time.process_time() - started

        return run

    with ExitStack() as stack:
        for step, (owner, name) in steps.items():
            stack.enter_context(patch.object(owner, name, wrap(step, getattr(owner, name))))
        yield seconds


def measure_detect(n: int) -> dict[str, Any]:
    from cilf.learners.cilf import detect as module
    from cilf.learners.cilf.placement import Placement

    learner, (X, y) = fit_learner(), draw(n, range(N_CLASSES), 2)
    learner.detect(X[:300])  # warms up
    steps = {
        "sample": (module, "sample_by_content"),
        "search": (module.Detector, "_search"),
        "assign": (Placement, "place"),
        "read labels and p-values": (module.Model, "read"),
    }
    with timed(steps) as seconds:
        found, cost = measure(lambda: learner.detect(X))
    cost["steps"] = {step: round(value, 3) for step, value in seconds.items()}
    return cost | {"n_novel": found.n_novel, "right": _share_right(found, y)}


def _share_right(found: Any, y: np.ndarray) -> float:
    """The share of instances that are called known or novel as they are."""
    return round(float((found.is_novel == (y >= N_KNOWN)).mean()), 4)


def measure_predict(n: int) -> dict[str, Any]:
    learner, (X, _) = fit_learner(), draw(n, range(N_KNOWN), 2)
    return measure(lambda: learner.predict(X))[1]


def measure_fit(n: int) -> dict[str, Any]:
    from cilf import CILF
    from cilf.learners import base
    from cilf.learners.cilf import learner as module

    X, y = draw(n, range(N_KNOWN), 1)
    steps = {
        "near-duplicates": (base, "group_near_duplicates"),
        "training": (module, "fit_embedding"),
        "readouts": (module, "learn_readouts"),
    }
    with timed(steps) as seconds:
        _, cost = measure(lambda: CILF(epochs=1).fit(X, y))
    return cost | {"steps": {step: round(value, 3) for step, value in seconds.items()}}


def measure_update(n: int) -> dict[str, Any]:
    learner, (X, _) = fit_learner(), draw(n, range(N_KNOWN), 3)
    X += 5
    return measure(lambda: learner.set_params(update_epochs=1).update(X, np.full(n, N_KNOWN)))[1]


def measure_read(n: int) -> dict[str, Any]:
    from cilf.data import load_instances

    X, _ = draw(n, range(N_KNOWN), 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        header = ",".join(f"value {i}" for i in range(WIDTH))
        np.savetxt(path, X, fmt="%.6g", delimiter=",", header=header, comments="")
        del X
        return measure(lambda: load_instances(path))[1]


def measure_features(n: int) -> dict[str, Any]:
    import torch

    from cilf.nn.pretrained import make_extractor

    X = np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    extractor = make_extractor(FROZEN, torch.device("cpu"))
    extractor.extract(X[:8])
    return measure(lambda: extractor.extract(X))[1]


def measure_agree(n: int) -> dict[str, Any]:
    """How a search in a sample agrees with one in all of a window of MNIST, and two such searches
    with other seeds."""
    from sklearn.metrics import adjusted_rand_score

    from cilf import CILF
    from cilf.data import load_dataset

    train, rng = load_dataset("mnist").train, np.random.default_rng(n)
    classes = rng.permutation(10)
    digits = train.y.astype(int)
    rows = [rng.permutation(np.flatnonzero(digits == label)) for label in classes[:N_CLASSES]]
    known = np.concatenate([of_class[:500] for of_class in rows[:N_KNOWN]])
    window = rng.permutation(np.concatenate([of_class[500:] for of_class in rows]))[:n]
    learner = CILF(epochs=EPOCHS).fit(train.X[known], train.y[known])
    X = train.X[window]

    def search(size: int, seed: int) -> Any:
        return learner.set_params(seed=seed, detector__sample_size=size).detect(X)

    whole, sampled, again = search(n, 0), search(20_000, 0), search(n, 1)
    truth = np.where(np.isin(digits[window], classes[:N_KNOWN]), -1, digits[window])
    pairs = {
        "sample and all": (whole, sampled), "all, two seeds": (whole, again),
    }  # fmt: skip
    return {
        "n_novel": {"all": whole.n_novel, "sample": sampled.n_novel, "other seed": again.n_novel},
        "rand": {
            name: round(adjusted_rand_score(a.cluster, b.cluster), 4)
            for name, (a, b) in pairs.items()
        },
        "rand_of_truth": {
            name: round(adjusted_rand_score(truth, found.cluster), 4)
            for name, found in (("all", whole), ("sample", sampled), ("other seed", again))
        },
    }


MEASURES = {
    "detect": measure_detect, "predict": measure_predict, "fit": measure_fit,
    "update": measure_update, "read": measure_read, "features": measure_features,
    "agree": measure_agree,
}  # fmt: skip


def run_point(kind: str, n: int) -> dict[str, Any]:
    """Measure a point in a process of its own."""
    command = [sys.executable, __file__, "--point", kind, str(n)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} of {n}: {done.stderr.strip().splitlines()[-1]}")
    return {"kind": kind, "rows": n, **json.loads(done.stdout.splitlines()[-1])}


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds and memory by rows."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "scale"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, key, label in zip(
        axes, ("seconds", "megabytes"), ("seconds on one core", "MB beyond the data"), strict=True
    ):
        for kind in ("detect", "predict", "fit"):
            points = [(r["rows"], max(r[key], 0.01)) for r in results if r["kind"] == kind]
            axis.plot(*zip(*points, strict=True), marker="o", label=kind)
        axis.axvline(20_000, color="grey", linewidth=0.8, linestyle=":")
        axis.set(xscale="log", yscale="log", xlabel="rows of 64 numbers", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--point", nargs=2, metavar=("KIND", "ROWS"))
    parser.add_argument("--kinds", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--most", type=int, default=1_000_000, help="largest number of rows")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    if options.point:
        kind, n = options.point
        print(json.dumps(MEASURES[kind](int(n))))
        return 0
    record = {"command": "python benchmarks/scale.py", **provenance()}
    record["load_average"] = round(os.getloadavg()[0], 1)
    results = []
    for kind in options.kinds:
        for n in (n for n in POINTS[kind] if n <= options.most):
            results.append(run_point(kind, n))
            print(json.dumps(results[-1]), flush=True)
            options.out.write_text(json.dumps(record | {"results": results}, indent=1) + "\n")
    if {"detect", "predict", "fit"} <= set(options.kinds):
        plot(results, options.figure)
    largest = [r for r in results if r["kind"] == "detect" and r["rows"] == 1_000_000]
    missed = [
        r for r in largest
        if r["seconds"] > MOST_SECONDS or r["megabytes"] > 1e3 * MOST_GIGABYTES
    ]  # fmt: skip
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
