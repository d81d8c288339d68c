"""What loading the real data sets costs: seconds and memory, first (decoding) and second load.

Each load runs in a process of its own with an empty cache folder, which the second load then
shares. Memory is the peak of the process, and that peak without what importing ``cilf.data`` alone
takes; both are given as a multiple of the raw uint8 arrays.

    CILF_DATA=... python benchmarks/data_loading.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cilf.benchmark.provenance import provenance

RESULT = Path(__file__).parent / "results" / "data_loading.json"
SETS = ("mnist", "cifar10", "cifar100")
MOST_SECONDS = {"mnist": 1.0}  # of a second load
MOST_MEMORY = {"cifar100": 2.0}  # times the raw size

LOAD = """
import json, re, sys, time
from pathlib import Path
import cilf.data
def peak():  # not getrusage: its peak includes that of the parent process
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
before, start = peak(), time.perf_counter()
data = cilf.data.load_dataset(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps({
    "seconds": seconds, "peak_bytes": peak(), "import_bytes": before,
    "raw_bytes": data.train.X.nbytes + data.test.X.nbytes,
    "rows": [len(data.train), len(data.test)],
}))
"""


def load(name: str, cache: str) -> dict[str, Any]:
    """Load a data set in a new process, and what that cost."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD, name], env=os.environ | {"CILF_CACHE": cache},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    cost = json.loads(done.stdout)
    raw = cost["raw_bytes"]
    ratios = {
        "peak_over_raw": cost["peak_bytes"] / raw,
        "added_over_raw": (cost["peak_bytes"] - cost["import_bytes"]) / raw,
    }
    return cost | ratios


def measure(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        return {"first": load(name, cache), "second": load(name, cache)}


def describe(name: str, costs: dict[str, Any]) -> str:
    parts = []
    for which in ("first", "second"):
        cost = costs[which]
        parts.append(
            f"{which} load {cost['seconds']:6.2f} s, peak {cost['peak_bytes'] / 2**20:5.0f} MiB "
            f"= {cost['peak_over_raw']:.2f} x raw, without imports {cost['added_over_raw']:.2f} x"
        )
    return f"{name:9} " + "; ".join(parts)


def missed_targets(results: dict[str, Any]) -> list[str]:
    """Targets that were not met."""
    slow = [n for n, most in MOST_SECONDS.items() if results[n]["second"]["seconds"] >= most]
    large = [n for n, most in MOST_MEMORY.items() if results[n]["first"]["peak_over_raw"] >= most]
    return [f"{n}: slow second load" for n in slow] + [f"{n}: too much memory" for n in large]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    results = {}
    for name in SETS:
        results[name] = measure(name)
        print(describe(name, results[name]), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"sets": results, **provenance()}, indent=1) + "\n")
    problems = missed_targets(results)
    print("\n".join(problems) or "all targets met")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
