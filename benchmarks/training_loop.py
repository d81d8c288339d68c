"""How much of a bare PyTorch loop's speed the training loop of cilf keeps.

Both train the same network on the same images with the losses of Algorithm 1, epoch by epoch in
turns, so that whatever else the machine does slows both alike. The bare loop is what an expert
would write for this one case: inputs scaled once, losses inline, nothing kept.

    python benchmarks/training_loop.py --threads 1 2
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.benchmark.provenance import provenance
from cilf.core.random import torch_generator
from cilf.learners.cilf import losses
from cilf.nn import training
from cilf.nn.network import Network, as_tensor, embed, make_network
from cilf.nn.prototypes import anneal, class_means

RESULT = Path(__file__).parent / "results" / "training_loop.json"
CASES: dict[str, tuple[int, ...]] = {"grey 28x28": (28, 28), "colour 32x32": (32, 32, 3)}
TARGET = 0.9  # share of the bare loop's speed that ours has to keep

N_INSTANCES, N_CLASSES, BATCH_SIZE = 2000, 10, 128
ALPHA, MARGIN, LAMBDA1, BETA = 0.3, 1.0, 1.0, 0.8
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 0.001

Loop = Iterator[float]  # trains for one epoch, gives its mean loss


def make_images(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Make noisy copies of one random picture per class; every fifth has another class's label.

    Wrong labels keep gradients alive: on data that can be learned perfectly they soon become
    denormal numbers, which processors handle slowly.
    """
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(N_INSTANCES) % N_CLASSES)
    pictures = rng.uniform(0, 255, (N_CLASSES, *shape))
    X = pictures[y] + rng.normal(0, 60, (N_INSTANCES, *shape))
    labels = np.where(np.arange(N_INSTANCES) % 5, y, rng.permutation(y))
    return X.clip(0, 255).astype(np.uint8), labels


def our_loop(network: Network, x: Tensor, y: Tensor, n_epochs: int) -> Loop:
    """Algorithm 1 as the learner has it."""
    generator = torch_generator(0, "fit")
    prototypes, _ = class_means(embed(network, x), y, N_CLASSES)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        intra = losses.prototype_cross_entropy(z, y[rows], prototypes, ALPHA)
        return intra + LAMBDA1 * losses.triplet_loss(z, y[rows], MARGIN, generator)

    batches = training.shuffle_batches(len(x), BATCH_SIZE, generator, network.device)
    settings = training.Settings(n_epochs, LEARNING_RATE, MOMENTUM, WEIGHT_DECAY)
    for epoch in training.epochs(network, x, batches, objective, settings, seed=0, purpose="fit"):
        means, counts = class_means(epoch.z, y[epoch.rows], N_CLASSES)
        prototypes = anneal(prototypes, means, counts, BETA)
        yield epoch.loss


def bare_loop(network: nn.Module, x: Tensor, y: Tensor, n_epochs: int) -> Loop:
    """The same by hand, for inputs that are scaled already."""
    optimizer = torch.optim.SGD(
        network.parameters(), LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True
    )
    one_hot = F.one_hot(y, N_CLASSES).float()
    network.eval()
    with torch.no_grad():
        prototypes = one_hot.T @ network(x) / one_hot.sum(0)[:, None]
    network.train()
    for _ in range(n_epochs):
        total, sums = 0.0, torch.zeros_like(prototypes)
        for rows in torch.randperm(len(x)).split(BATCH_SIZE):
            z = network(x[rows])
            intra = F.cross_entropy(-ALPHA * bare_distances(z, prototypes), y[rows])
            loss = intra + LAMBDA1 * bare_triplets(z, y[rows], one_hot[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(x)
            sums += one_hot[rows].T @ z.detach()
        prototypes = BETA * prototypes + (1 - BETA) * sums / one_hot.sum(0)[:, None]
        yield total


def bare_distances(a: Tensor, b: Tensor) -> Tensor:
    return a.square().sum(1)[:, None] - 2 * a @ b.T + b.square().sum(1)


def bare_triplets(z: Tensor, y: Tensor, one_hot: Tensor) -> Tensor:
    """A random positive and a random negative of each other class: the largest of noise."""
    n = len(z)
    noise = torch.rand(n, n)
    same = (y[:, None] == y).float()
    distances = bare_distances(z, z)
    positive = (noise * (same - torch.eye(n))).argmax(1)
    negatives = (noise[:, :, None] * one_hot).argmax(1)  # (n, classes)
    nearest = (distances.gather(1, negatives) + 1e9 * one_hot).amin(1)
    return F.relu(MARGIN + distances.gather(1, positive[:, None])[:, 0] - nearest).mean()


def compare(shape: tuple[int, ...], n_rounds: int) -> dict[str, Any]:
    """Speeds of both loops, from epochs run in turns; the first two rounds warm up."""
    X, labels = make_images(shape)
    network = make_network(
        "convnet", shape, embedding_size=64, width=None, seed=0, device=torch.device("cpu")
    )
    x, y = as_tensor(X, network.device), torch.from_numpy(labels)
    network.standardise(x)
    bare = nn.Sequential(copy.deepcopy(network.backbone), copy.deepcopy(network.head))
    scaled = (x.float() - network.mean.view(1, -1, 1, 1)) / network.std.view(1, -1, 1, 1)
    n_epochs = n_rounds + 2
    loops = (our_loop(network, x, y, n_epochs), bare_loop(bare, scaled, y, n_epochs))
    seconds, last_losses = run_in_turns(loops, n_epochs)
    ours, bares = seconds[0][2:], seconds[1][2:]
    ratios = sorted(b / a for a, b in zip(ours, bares, strict=True))
    return {
        "ours_images_per_second": round(N_INSTANCES / statistics.median(ours)),
        "bare_images_per_second": round(N_INSTANCES / statistics.median(bares)),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_quartiles": [round(q, 3) for q in statistics.quantiles(ratios, n=4)[::2]],
        "last_losses": {"ours": last_losses[0], "bare": last_losses[1]},
    }


def run_in_turns(loops: tuple[Loop, Loop], n_rounds: int) -> tuple[list[list[float]], list[float]]:
    """Seconds of every epoch of each loop, and its last loss; who goes first alternates."""
    seconds: list[list[float]] = [[], []]
    last_losses = [0.0, 0.0]
    for number in range(n_rounds):
        for i in (0, 1) if number % 2 else (1, 0):
            taken, last_losses[i] = time_call(lambda loop=loops[i]: next(loop))
            seconds[i].append(taken)
    return seconds, last_losses


def time_call(work: Callable[[], float]) -> tuple[float, float]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def measure(threads: int, n_rounds: int) -> list[dict[str, Any]]:
    torch.set_num_threads(threads)
    found = []
    for name, shape in CASES.items():
        row = {"case": name, "threads": threads} | compare(shape, n_rounds)
        row["load_average"] = round(os.getloadavg()[0], 1)  # above the cores: speeds are too low
        print(
            f"{name}, {threads} thread(s): {row['ours_images_per_second']} images/s, bare loop "
            f"{row['bare_images_per_second']}, ratio {row['ratio']}",
            file=sys.stderr,
        )
        found.append(row)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="one run with each")
    parser.add_argument("--rounds", type=int, default=15, help="epochs of each loop")
    parser.add_argument("--json", action="store_true", help="print the record")
    parser.add_argument("--out", type=Path, default=RESULT, help="where to write the record")
    options = parser.parse_args()
    record = {
        "command": f"python benchmarks/training_loop.py --rounds {options.rounds} --threads "
        + " ".join(str(n) for n in options.threads),
        **provenance(),
        "instances": N_INSTANCES,
        "batch_size": BATCH_SIZE,
        "target_ratio": TARGET,
        "results": [row for n in options.threads for row in measure(n, options.rounds)],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(record))
    return 0 if all(row["ratio"] >= TARGET for row in record["results"]) else 1


if __name__ == "__main__":
    sys.exit(main())
