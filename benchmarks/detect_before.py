"""What detection and fitting cost beside an earlier commit, both sides in one run.

Each side is a process of its own with the source of its commit. It fits the same learner and
detects in the same window. The sides take turns, and the ratio of their CPU seconds is reported.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/detect_before.py --before d2742e2
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "detect_before.json"
TARGET = 1.5  # times the seconds of the commit before
N_ROUNDS, N_DETECTIONS = 3, 3


def measure(name: str) -> dict[str, float]:
    """CPU seconds of a fit and of a detection, with the source that this process imports."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from detect import CASES, fit_learner

    learner, window = fit_learner(CASES[name], 5)
    started = time.process_time()
    fit_learner(CASES[name], 5)
    fitted = time.process_time()
    learner.set_params(detector__k_max=None)
    learner.detect(window)  # warms up
    seconds = []
    for _ in range(N_DETECTIONS):
        begun = time.process_time()
        learner.detect(window)
        seconds.append(time.process_time() - begun)
    return {"fit": fitted - started, "detect": statistics.median(seconds)}


def measure_apart(source: Path, name: str) -> dict[str, float]:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(source / "src")},
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(before: Path, name: str) -> dict[str, Any]:
    sides: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    for number in range(N_ROUNDS):
        order = {"before": before, "now": ROOT}
        for side in order if number % 2 else reversed(order):
            sides[side].append(measure_apart(order[side], name))
    found: dict[str, Any] = {}
    for what in ("fit", "detect"):
        seconds = {s: statistics.median(each[what] for each in runs) for s, runs in sides.items()}
        found[what] = {s: round(value, 3) for s, value in seconds.items()}
        found[what]["ratio"] = round(seconds["now"] / seconds["before"], 2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="d2742e2", help="the commit to compare with")
    parser.add_argument("--data", nargs="+", default=["mnist", "cifar10", "cifar10 frozen"])
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(before), options.before], check=True)
        try:
            result = {name: compare(before, name) for name in options.data}
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    from cilf.benchmark.provenance import provenance

    text = json.dumps({"before": options.before, "result": result} | provenance(), indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    for name, found in result.items():
        print(f"{name}: detect {found['detect']}, fit {found['fit']}")
    return int(any(found["detect"]["ratio"] > TARGET for found in result.values()))


if __name__ == "__main__":
    sys.exit(main())
