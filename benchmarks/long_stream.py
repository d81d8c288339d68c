"""Whether a learner stays as fast and as small over 50 windows as it was in the first.

The stream of MNIST digits starts with three known classes. One new class comes in each of the first
seven windows, then none. The learner detects in every window, learns its labels and is saved. The
record holds the seconds, the memory of the process and the size of the model for each window. The
summary compares windows 11-20, when no class is new any more, with the last ten.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/long_stream.py
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch

from cilf import CILF
from cilf.benchmark.provenance import provenance
from cilf.data import Dataset, load_dataset

RESULT = Path(__file__).parent / "results" / "long_stream.json"
STATUS = Path("/proc/self/status")
DATA, N_INITIAL, INITIAL_SIZE, WINDOW_SIZE = "mnist", 3, 300, 20  # instances of each class
MEASURES = ("seconds_detect", "seconds_update", "memory_mb", "model_kb")
MOST_GROWTH = 1.2  # of the last ten windows over windows 11-20

Labelled = tuple[np.ndarray, np.ndarray]


def make_windows(dataset: Dataset, n_windows: int, seed: int) -> Iterator[Labelled]:
    """Yield the initial instances, then windows, each with one more class until all are there."""
    rng, (X, y) = np.random.default_rng(seed), (dataset.train.X, dataset.train.y)
    classes = rng.permutation(np.array(dataset.classes))
    unseen = {label: rng.permutation(np.flatnonzero(y == label)) for label in classes}

    def take(n_classes: int, size: int) -> Labelled:
        rows = np.concatenate([unseen[label][:size] for label in classes[:n_classes]])
        for label in classes[:n_classes]:
            unseen[label] = unseen[label][size:]
        return X[rows], y[rows]

    yield take(N_INITIAL, INITIAL_SIZE)
    for number in range(1, n_windows + 1):
        yield take(min(N_INITIAL + number, len(classes)), WINDOW_SIZE)


def measure(n_windows: int, parameters: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """Measure what each window costs."""
    windows = make_windows(load_dataset(DATA), n_windows, seed)
    learner = CILF(seed=seed, **parameters).fit(*next(windows))
    for number, (X, y) in enumerate(windows, start=1):
        started = time.perf_counter()
        found = learner.detect(X)
        detected = time.perf_counter()
        learner.update(X, y)
        updated = time.perf_counter()
        yield {
            "window": number,
            "instances": len(X),
            "n_classes": len(learner.classes_),
            "n_novel_found": found.n_novel,
            "seconds_detect": round(detected - started, 3),
            "seconds_update": round(updated - detected, 3),
            "memory_mb": round(resident_bytes() / 1e6, 1),
            "model_kb": round(model_bytes(learner) / 1e3, 1),
        }


def resident_bytes() -> int:
    gc.collect()
    found = re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{STATUS} does not say how much memory the process has.")
    return 1024 * int(found[1])


def model_bytes(learner: CILF) -> int:
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "model")
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def summarize(windows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Compare each measure in windows 11-20 with the last ten, and fit its slope per window.

    Seconds are medians, since a busy machine makes single windows slow.
    """
    steady = windows[10:]
    found = {}
    for name in MEASURES:
        middle = median if name.startswith("seconds") else mean
        early, late = (middle(w[name] for w in share) for share in (steady[:10], steady[-10:]))
        slope = np.polyfit([w["window"] for w in steady], [w[name] for w in steady], 1)[0]
        found[name] = {
            "windows_11_20": round(early, 3), "last_10": round(late, 3),
            "ratio": round(late / early, 3), "slope_per_window": round(float(slope), 4),
        }  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, default=50)
    parser.add_argument("--backbone", default="mlp")
    parser.add_argument("--memory", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT, help="where to write the record")
    options = parser.parse_args()
    if options.windows < 30:
        parser.error(f"--windows is {options.windows}: windows 11-20 and the last 10 need 30.")
    torch.set_num_threads(options.threads)
    parameters = {"backbone": options.backbone, "memory_size": options.memory}
    about = provenance()
    windows = []
    for row in measure(options.windows, parameters, options.seed):
        print(row, file=sys.stderr)
        windows.append(row)
    summary = summarize(windows)
    record = {
        "command": f"python benchmarks/long_stream.py --windows {options.windows} --backbone "
        f"{options.backbone} --memory {options.memory} --seed {options.seed} "
        f"--threads {options.threads}",
        **about,
        "parameters": parameters,
        "load_average": round(os.getloadavg()[0], 1),  # above the cores: seconds are too many
        "most_growth": MOST_GROWTH,
        "summary": summary,
        "windows": windows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(summary, indent=1))
    return 0 if all(values["ratio"] <= MOST_GROWTH for values in summary.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
