"""What a second process gains in training, and what it costs to start.

The same network is trained on the same images by one process and by several, which compute parts of
every batch, each with one thread. Wall time is that of an epoch in the first process. Its processor
time is what its core computes. The difference is what it waits for the others, and for its core on
a machine with other work.

    python benchmarks/devices.py --devices 2
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cilf.benchmark.provenance import provenance
from cilf.core.random import torch_generator
from cilf.learners.cilf import losses
from cilf.nn import training
from cilf.nn.network import make_network
from cilf.nn.prototypes import class_means
from cilf.nn.rank_processes import run_in_ranks

RESULT = Path(__file__).parent / "results" / "devices.json"
CASES: dict[str, dict[str, Any]] = {
    "mlp, 64 values": {"backbone": "mlp", "instance_shape": (64,), "width": None},
    "convnet, grey 28x28": {"backbone": "convnet", "instance_shape": (28, 28), "width": None},
    "resnet18 of width 16, colour 32x32": {
        "backbone": "resnet18", "instance_shape": (32, 32, 3), "width": 16,
    },
}  # fmt: skip
N_INSTANCES, N_CLASSES, BATCH_SIZE = 1280, 10, 128


def time_epochs(case: str, n_epochs: int) -> dict[str, float]:
    """Median seconds of an epoch of this process, without the first, which warms up."""
    network = make_network(**CASES[case], embedding_size=64, seed=0, device=torch.device("cpu"))
    generator = torch_generator(0, "data")
    y = torch.randint(N_CLASSES, (N_INSTANCES,), generator=generator)
    shape = CASES[case]["instance_shape"]
    n_channels = shape[2:] or (1,)
    size = shape if len(shape) == 1 else (*n_channels, *shape[:2])
    x = torch.randn(N_INSTANCES, *size, generator=generator)
    prototypes, _ = class_means(torch.randn(N_INSTANCES, 64, generator=generator), y, N_CLASSES)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        own = losses.prototype_cross_entropy(z, y[rows], prototypes, 0.3)
        return own + losses.neighbour_cross_entropy(z, y[rows], 0.3)

    batches = training.shuffle_batches(N_INSTANCES, BATCH_SIZE, generator, network.device)
    settings = training.Settings(n_epochs + 1, 0.01, clip=1.0, augmentation="shift")
    marks = [(time.perf_counter(), time.process_time())]
    for _ in training.epochs(network, x, batches, objective, settings, seed=0, purpose="fit"):
        marks.append((time.perf_counter(), time.process_time()))
    pairs = list(itertools.pairwise(marks[1:]))
    wall, processor = (statistics.median(b[i] - a[i] for a, b in pairs) for i in (0, 1))
    return {"wall": round(wall, 3), "processor": round(processor, 3)}


def measure(devices: int, n_epochs: int) -> dict[str, Any]:
    """Seconds of an epoch in each case, and those that it takes to start the processes."""
    started = time.perf_counter()
    if devices > 1:
        run_in_ranks(os.getpid, devices=devices)
    start = time.perf_counter() - started
    cases = {}
    for case in CASES:
        if devices == 1:
            cases[case] = time_epochs(case, n_epochs)
        else:
            cases[case] = run_in_ranks(time_epochs, case, n_epochs, devices=devices)
        print(f"{devices}: {case}: {cases[case]}", file=sys.stderr)
    load = round(os.getloadavg()[0], 1)  # above the cores: wall times are too long
    return {"devices": devices, "start": round(start, 1), "epoch": cases, "load_average": load}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=2, help="the number of processes")
    parser.add_argument("--epochs", type=int, default=9, help="epochs of each case")
    parser.add_argument("--out", type=Path, default=RESULT, help="where to write the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = {
        "command": f"python benchmarks/devices.py --devices {options.devices} "
        f"--epochs {options.epochs}",
        **provenance(),
        "instances": N_INSTANCES,
        "batch_size": BATCH_SIZE,
        "results": [measure(n, options.epochs) for n in (1, options.devices)],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
