"""What a day with 10 million photographs costs on 1, 8 and 64 machines: measured steps, a formula,
and the scheduler of Ray with tasks of that length.

    OMP_NUM_THREADS=1 python benchmarks/fleet.py

1. Steps: seconds of one core for a photograph of 1600 x 1200 pixels, and the seconds of a window
   that are not spread over machines (scale.json has them).
2. Formula: a window ends when its blocks are done, which the slots take in turns, and its search.
3. Simulation: Ray runs a task for each block, which sleeps a part of its time. A slot is a process
   that Ray starts. The formula is compared with how long that took.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cilf.benchmark.provenance import provenance

HERE = Path(__file__).parent
RESULT, SCALE = HERE / "results" / "fleet.json", HERE / "results" / "scale.json"
HEIGHT, WIDTH, SIDE, QUALITY = 1200, 1600, 96, 85
N_PHOTOGRAPHS = 24  # that each step is measured with
A_DAY, WINDOWS = 10_000_000, 24
BLOCK = 2048  # photographs of a task
MACHINES, CORES = (1, 8, 64), 8  # of a machine
SEARCHED = 1_000_000  # rows of the detection that the search is taken from
FROZEN = "efficientnet-lite0"
SHORTER = 30  # a simulated second stands for so many
SIMULATED_BLOCKS = 192  # of a window, so that 64 slots have three each
SIMULATED_WINDOWS = 2
SPREAD = 0.2  # standard deviation of a task's time, in its mean


# ----------------------------------------------------------------- steps


def make_photograph(seed: int) -> bytes:
    """A JPEG with edges, surfaces and noise, of 300 to 900 kB."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), dtype=np.float32)
    noisy = smooth + rng.normal(0, 6, smooth.shape)
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def each(work: Callable[[], Any], n: int) -> float:
    """Processor seconds for one of ``n``."""
    started = time.process_time()
    work()
    return (time.process_time() - started) / n


def measure_steps() -> dict[str, float]:
    """Seconds of one core for a photograph."""
    import torch

    from cilf.data import pixels
    from cilf.nn.pretrained import make_extractor

    photographs = [make_photograph(seed) for seed in range(N_PHOTOGRAPHS)]
    form = pixels.Form((SIDE, SIDE), colour=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.jpg" for i in range(N_PHOTOGRAPHS)]
        for path, content in zip(paths, photographs, strict=True):
            path.write_bytes(content)
        read = each(lambda: [path.read_bytes() for path in paths], N_PHOTOGRAPHS)
        decode = each(lambda: [pixels.read_pixels(path, form) for path in paths], N_PHOTOGRAPHS)
    X = np.random.default_rng(0).integers(0, 256, (96, SIDE, SIDE, 3), dtype=np.uint8)
    extractor = make_extractor(FROZEN, torch.device("cpu"))
    extractor.extract(X[:8])
    return {
        "megabytes": sum(map(len, photographs)) / N_PHOTOGRAPHS / 1e6,
        "read": read,
        "decode": decode,
        "features": each(lambda: extractor.extract(X), len(X)),
        **read_scale(),
    }


def read_scale() -> dict[str, float]:
    """Assignment of a row, and the search of a window, from the record of scale.py."""
    points = json.loads(SCALE.read_text(encoding="utf-8"))["results"]
    (found,) = (point for point in points if (point["kind"], point["rows"]) == ("detect", SEARCHED))
    steps = found["steps"]
    alone = steps["sample"] + steps["search"]
    return {"assign": (found["seconds"] - alone) / SEARCHED, "search of a window": alone}


# ----------------------------------------------------------------- formula


def predict_window(n_blocks: int, slots: int, block: float, search: float) -> float:
    """Seconds of a window: rounds of blocks, then what is done in one place."""
    return math.ceil(n_blocks / slots) * block + search


def predict_day(steps: dict[str, float], machines: int) -> dict[str, Any]:
    block = BLOCK * sum(steps[name] for name in ("read", "decode", "features", "assign"))
    n_blocks = math.ceil(A_DAY / WINDOWS / BLOCK)
    slots = machines * CORES
    seconds = WINDOWS * predict_window(n_blocks, slots, block, steps["search of a window"])
    terabytes = A_DAY * steps["megabytes"] / 1e6
    return {
        "machines": machines,
        "hours": round(seconds / 3600, 2),
        "machine_hours": round(seconds / 3600 * machines, 1),
        "busy": round(WINDOWS * n_blocks * block / (slots * seconds), 3),
        "megabytes_a_second": round(1e6 * terabytes / seconds / machines, 1),
        "terabytes": round(terabytes, 2),
    }


# ----------------------------------------------------------------- simulation


def simulate(machines: int, block: float, search: float) -> dict[str, Any]:
    """Let Ray place the tasks of some windows, with a slot for each machine."""
    import ray

    ray.init(
        address="local", num_cpus=machines, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip

    @ray.remote(num_cpus=1)
    def sleep(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    rng = np.random.default_rng(machines)
    lengths = block / SHORTER * rng.normal(1, SPREAD, (SIMULATED_WINDOWS, SIMULATED_BLOCKS))
    while len(set(ray.get([sleep.remote(1.0) for _ in range(2 * machines)]))) < machines:
        continue  # until all processes have started
    started = time.perf_counter()
    for window in lengths.clip(0):
        ray.get([sleep.remote(float(seconds)) for seconds in window])
        time.sleep(search / SHORTER)
    took = (time.perf_counter() - started) * SHORTER
    ray.shutdown()
    predicted = SIMULATED_WINDOWS * predict_window(SIMULATED_BLOCKS, machines, block, search)
    return {
        "machines": machines, "blocks": SIMULATED_BLOCKS * SIMULATED_WINDOWS,
        "predicted": round(predicted, 1), "simulated": round(took, 1),
        "ratio": round(took / predicted, 3),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    steps = measure_steps()
    print("seconds:", {name: round(value, 6) for name, value in steps.items()}, flush=True)
    days = [predict_day(steps, machines) for machines in MACHINES]
    for day in days:
        print(day, flush=True)
    block = BLOCK * sum(steps[name] for name in ("read", "decode", "features", "assign"))
    simulated = []
    for machines in MACHINES:
        simulated.append(simulate(machines, block, steps["search of a window"]))
        print(simulated[-1], flush=True)
    result = {
        "seconds": {name: round(value, 6) for name, value in steps.items()},
        "photographs": A_DAY, "windows": WINDOWS, "cores": CORES, "days": days,
        "simulated": simulated, **provenance(),
    }  # fmt: skip
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
