"""How much faster the silhouette is than scikit-learn's, and how far from it.

Both score the same clusters of 10,000 instances in 64 dimensions, in turns, with as many threads.
"Tight" clusters lie far apart for their size, which costs ours its single precision.

    OMP_NUM_THREADS=1 python benchmarks/silhouette.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from cilf.benchmark.provenance import provenance
from cilf.clustering.silhouette import silhouette

RESULT = Path(__file__).parent / "results" / "silhouette.json"
TARGET_RATIO, TARGET_ERROR = 3.0, 1e-5
N_INSTANCES, SIZE = 10_000, 64
CASES = {"loose": 1.0, "tight": 0.1}  # deviation within a cluster; centres deviate by 2
N_CLUSTERS = (3, 13, 60)


def make_clusters(n_clusters: int, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_clusters, size=N_INSTANCES)
    z = 2 * rng.normal(size=(n_clusters, SIZE))[labels]
    z += deviation * rng.normal(size=z.shape)
    return z.astype(np.float32), labels


def compare(n_clusters: int, deviation: float, n_rounds: int) -> dict[str, Any]:
    z, labels = make_clusters(n_clusters, deviation)
    tensors = torch.from_numpy(z), torch.from_numpy(labels)
    ours, theirs = [], []
    for _ in range(n_rounds):
        ours.append(time_call(lambda: silhouette(*tensors)))
        theirs.append(time_call(lambda: float(silhouette_score(z, labels))))
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "ours_seconds": round(statistics.median(our.seconds for our in ours), 3),
        "sklearn_seconds": round(statistics.median(their.seconds for their in theirs), 3),
        "ratio": round(statistics.median(b.seconds / a.seconds for a, b in pairs), 2),
        "cpu_ratio": round(statistics.median(b.cpu / a.cpu for a, b in pairs), 2),
        "error": abs(ours[0].found - theirs[0].found),
    }


class Timing(NamedTuple):
    seconds: float
    cpu: float  # seconds too, but only those in which the process ran
    found: float


def time_call(work: Callable[[], float]) -> Timing:
    seconds, cpu = time.perf_counter(), time.process_time()
    found = work()
    return Timing(time.perf_counter() - seconds, time.process_time() - cpu, found)


def measure(n_rounds: int) -> list[dict[str, Any]]:
    found = []
    for case, deviation in CASES.items():
        for n_clusters in N_CLUSTERS:
            row = {"case": case, "clusters": n_clusters} | compare(n_clusters, deviation, n_rounds)
            row["load_average"] = round(os.getloadavg()[0], 1)
            print(row, file=sys.stderr)
            found.append(row)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULT, help="where to write the record")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    about = provenance()
    with threadpool_limits(options.threads):
        results = measure(options.rounds)
    record = {
        "command": f"python benchmarks/silhouette.py --threads {options.threads} "
        f"--rounds {options.rounds}",
        **about,
        "instances": N_INSTANCES,
        "dimensions": SIZE,
        "target_ratio": TARGET_RATIO,
        "target_error": TARGET_ERROR,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    met = (row["ratio"] >= TARGET_RATIO and row["error"] <= TARGET_ERROR for row in results)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
