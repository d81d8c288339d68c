"""How much faster two workers of a Ray cluster compute features than one.

The cluster is on this machine, with one core for each node: one node, then two. The images are
those of MNIST, repeated with noise, so that no two are the same and none is in a cache. Each
repetition measures one worker and two in turn. Seconds of the processor are those inside the frozen
network and its cache; other work on the machine changes them little. The ratio of the processor is
that of the seconds of the one worker to those of the busier one of two: what the wall clock would
show on an idle machine, but for what the cluster itself needs. The start of the cluster is not part
of the seconds.

    CILF_DATA=... python benchmarks/cluster.py --images 20000
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cilf.benchmark.provenance import provenance
from cilf.core.ray_cluster import BEYOND_THIS_MACHINE, connect, silence

RESULT = Path(__file__).parent / "results" / "cluster.json"
FROZEN = "efficientnet-lite0"
WARM_UP = 8  # tasks for each worker, before the clock starts: each loads the network
LEAST_RATIO = 1.7


def make_images(n: int, seed: int) -> np.ndarray:
    """MNIST repeated, each image with noise of its own."""
    from cilf.data import load_dataset

    X, rng = load_dataset("mnist").train.X, np.random.default_rng(seed)
    images = X[np.arange(n) % len(X)].astype(np.int16)
    images += rng.integers(-8, 9, images.shape, dtype=np.int16)
    return images.clip(0, 255).astype(np.uint8)


@contextmanager
def start_cluster(n_nodes: int) -> Iterator[Any]:
    """A cluster of nodes with one core each, which nothing outside this machine reaches."""
    os.environ[BEYOND_THIS_MACHINE] = "0"
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    try:
        for _ in range(n_nodes - 1):
            cluster.add_node(**node)
        with silence(), connect(cluster.address, 1, "this benchmark") as ray:
            yield ray
    finally:
        cluster.shutdown()


def embed(block: np.ndarray) -> tuple[np.ndarray, ...]:
    """The features, the seconds of the processor for each image, and the process."""
    import torch

    from cilf.nn.feature_cache import cached_features
    from cilf.nn.pretrained import make_extractor

    torch.set_num_threads(1)
    started = time.process_time()
    features = cached_features(make_extractor(FROZEN, torch.device("cpu")), block)
    seconds = (time.process_time() - started) / len(block)
    return features.sum(1), np.full(len(block), seconds), np.full(len(block), os.getpid())


def load_network(_: int) -> None:
    import torch

    from cilf.nn.pretrained import make_extractor

    make_extractor(FROZEN, torch.device("cpu"))
    time.sleep(0.01)


def measure(n_nodes: int, images: np.ndarray) -> dict[str, Any]:
    """Wall and processor seconds of all features."""
    from cilf.core.rows import map_rows
    from cilf.data.ray_rows import ITEMS, Tasks

    with (
        tempfile.TemporaryDirectory() as cache,
        start_cluster(n_nodes) as ray,
    ):
        os.environ["CILF_CACHE"] = cache
        tasks = Tasks(ray, None)
        list(tasks.map_items(load_network, range(n_nodes * WARM_UP * ITEMS)))
        load, started = os.getloadavg()[0], time.perf_counter()
        total, seconds, process = map_rows(embed, tasks.distribute(images))
        wall, workers = time.perf_counter() - started, np.unique(process)
    return {
        "workers": n_nodes,
        "seconds": round(wall, 1),
        "cpu_seconds_by_worker": [round(float(seconds[process == p].sum()), 1) for p in workers],
        "images_by_worker": [int((process == p).sum()) for p in workers],
        "load_average": round(load, 1),
        "checksum": round(float(total.astype(np.float64).sum()), 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    images = make_images(options.images, 0)
    record = {"command": f"python benchmarks/cluster.py --images {options.images}", **provenance()}
    record |= {"network": FROZEN, "images": options.images, "pixels": list(images.shape[1:])}
    results: list[dict[str, Any]] = []
    ratios: dict[str, list[float]] = {"wall": [], "processor": []}
    for _ in range(options.repetitions):
        one, two = (measure(n_nodes, images) for n_nodes in (1, 2))
        results += [one, two]
        ratios["wall"].append(round(one["seconds"] / two["seconds"], 2))
        busiest = [max(result["cpu_seconds_by_worker"]) for result in (one, two)]
        ratios["processor"].append(round(busiest[0] / busiest[1], 2))
        for result in (one, two):
            print(json.dumps(result), flush=True)
        ratio = {name: statistics.median(values) for name, values in ratios.items()}
        summary = {"ratios": ratios, "ratio": ratio, "target": LEAST_RATIO}
        options.out.write_text(json.dumps(record | summary | {"results": results}, indent=1) + "\n")
    return 0 if min(ratio.values()) >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
