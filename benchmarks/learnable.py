"""Learnable clustering of a window, in parts, beside the detector's k-means.

A *head* is a linear layer with an output for each known and each novel class. It starts at the
centres of the clusters. It minimises the cross entropy of the labelled instances, the disagreement
of each instance with its nearest neighbours, and the divergence of the mean prediction from the
sizes of the clusters, on more and more of the window, the surest instances first. A *view without
labels* is the output of a copy of the network that was trained on the window and the labelled
instances together, by VICReg on random crops and colours. It is one more view to cluster on.

The number of classes is given, or the one that the detector finds, in all variants. Nothing of this
is a default: docs/methods/cilf.md has the table.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/learnable.py
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

from cilf import CILF, Detection
from cilf.benchmark.provenance import provenance
from cilf.core.distances import squared_distances
from cilf.learners.cilf.decision import novelty_threshold, weigh_by_class
from cilf.learners.cilf.detect import Model
from cilf.learners.cilf.embedding import Embedding, locate_classes
from cilf.nn.augment import random_flip
from cilf.nn.network import Network, as_tensor, backbone_features

sys.path.insert(0, str(Path(__file__).parent))
from count import CASES, Pool, Rows, score

RESULTS = Path(__file__).parent / "results"
DATA = ("cifar10", "cifar10-encoder", "mnist", "notmnist", "omniglot", "newsgroups")
N_NOVEL = {"omniglot": (5, 3, 8, 5, 10, 2)}  # in each window; sizes are equal, tenfold, equal, ...
USUAL_NOVEL = (2, 3, 1, 4, 3, 2)
MOST_NEIGHBOURS, NEIGHBOUR_SHARE = 10, 0.25  # of the cluster of an instance
TEMPERATURES = (0.1, 0.2, 0.4, 0.7, 1.0)
BATCH = 128


@dataclass(frozen=True)
class Head:
    """The settings of a head."""

    sizes: str = "estimated"  # that the mean prediction is drawn to: "equal", "none"
    has_curriculum: bool = True
    n_steps: int = 300
    learning_rate: float = 0.02
    weight: float = 2.0  # of the divergence from the sizes


@dataclass(frozen=True)
class Case:
    """A window in the space that it is clustered in, and its clusters."""

    points: Tensor
    known: Tensor  # centres
    labelled: Tensor
    labels: Tensor
    held_out: Tensor
    held_out_labels: Tensor
    cluster: Tensor
    novelty: np.ndarray


def tune(case: Case, head: Head) -> tuple[np.ndarray, np.ndarray]:
    """The clusters and the novelty of a head that was trained on a window."""
    n_known, points = len(case.known), case.points
    novel = [points[case.cluster == k].mean(0) for k in range(int(case.cluster.max()) + 1)]
    centres = torch.cat([case.known, torch.stack(novel)])
    nearest = squared_distances(points, case.known).argmin(1)
    own = torch.where(case.cluster >= 0, n_known + case.cluster, nearest)
    counts = torch.bincount(own, minlength=len(centres)).float()
    layer = start_head(case, centres, own)
    train_head(layer, case, counts, own, head)
    with torch.no_grad():
        odds, calibration = layer(points), layer(case.held_out)
    margins = [z[:, n_known:].amax(1) - z[:, :n_known].amax(1) for z in (odds, calibration)]
    sizes = torch.bincount(odds[:, :n_known].argmax(1), minlength=n_known).float()
    weights = weigh_by_class(case.held_out_labels, sizes)
    limit = novelty_threshold(margins[1], 0.05, strict=False, weights=weights)
    cluster = torch.where(margins[0] > limit, odds[:, n_known:].argmax(1), -1)
    return cluster.numpy(), margins[0].numpy()


def start_head(case: Case, centres: Tensor, own: Tensor) -> nn.Linear:
    """Log-densities of spheres around the centres, as sharp as suits held-out instances."""
    layer = nn.Linear(centres.shape[1], len(centres))
    variance = (case.points - centres[own]).square().mean()
    weight, bias = centres / variance, -centres.square().sum(1) / (2 * variance)
    odds = (case.held_out @ weight.T + bias)[:, : len(case.known)]
    sharpness = min(
        TEMPERATURES, key=lambda t: float(F.cross_entropy(odds * t, case.held_out_labels))
    )
    with torch.no_grad():
        layer.weight.copy_(sharpness * weight)
        layer.bias.copy_(sharpness * bias)
    return layer


def train_head(layer: nn.Linear, case: Case, counts: Tensor, own: Tensor, head: Head) -> None:
    generator = torch.Generator().manual_seed(0)
    points, n = case.points, len(case.points)
    distances = squared_distances(points, points).fill_diagonal_(torch.inf)
    neighbours = distances.topk(MOST_NEIGHBOURS, largest=False).indices
    n_neighbours = (NEIGHBOUR_SHARE * counts).clamp(1, MOST_NEIGHBOURS).long()[own]
    shares = (counts + 1) / (counts + 1).sum()
    if head.sizes == "equal":
        shares = torch.full_like(shares, 1 / len(shares))
    with torch.no_grad():
        order = layer(points).softmax(1).amax(1).argsort(descending=True)
    optimiser = torch.optim.Adam(layer.parameters(), lr=head.learning_rate)
    for step in range(head.n_steps):
        pace = 0.2 * 3 ** (4 * step // head.n_steps) if head.has_curriculum else 1.0
        easy = max(1, round(min(pace, 1.0) * n))
        rows = order[torch.randint(easy, (2 * BATCH,), generator=generator)]
        which = (torch.rand(len(rows), generator=generator) * n_neighbours[rows]).long()
        here, there = layer(points[rows]), layer(points[neighbours[rows, which]])
        loss = (agree(here, there) + agree(there, here)) / 2
        mean = (here.softmax(1).mean(0) + there.softmax(1).mean(0)) / 2
        if head.sizes != "none":
            loss = loss + head.weight * (mean * (mean.clamp_min(1e-8) / shares).log()).sum()
        some = torch.randint(len(case.labels), (2 * BATCH,), generator=generator)
        loss = loss + F.cross_entropy(layer(case.labelled[some]), case.labels[some])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def agree(odds: Tensor, teacher: Tensor) -> Tensor:
    return F.cross_entropy(odds, teacher.detach().softmax(1))


# --------------------------------------------------------------------- a view without labels


def learn_view(network: Network, x: Tensor, n_steps: int) -> Network:
    """A copy of the network whose features change little when an image is cropped or coloured."""
    generator = torch.Generator().manual_seed(0)
    copied = copy.deepcopy(network).train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        width = copied.head.in_features
        projector = nn.Sequential(
            nn.Linear(width, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 256)
        )
    weights = [*copied.backbone.parameters(), *projector.parameters()]
    optimiser = torch.optim.Adam(weights, lr=1e-3, weight_decay=1e-4)
    n_rounds = n_steps * BATCH // len(x) + 1
    order = torch.cat([torch.randperm(len(x), generator=generator) for _ in range(n_rounds)])
    for rows in torch.split(order[: n_steps * BATCH], BATCH):
        images = torch.cat([change(x[rows].float(), generator) for _ in range(2)])
        one, two = projector(copied.features(images)).chunk(2)
        loss = 25 * F.mse_loss(one, two) + 25 * (spread(one) + spread(two)) / 2
        loss = loss + covariance(one) + covariance(two)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return copied.eval()


def spread(z: Tensor) -> Tensor:
    return F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()


def covariance(z: Tensor) -> Tensor:
    matrix = z.T.cov()
    return (matrix.square().sum() - matrix.diagonal().square().sum()) / len(matrix)


def change(x: Tensor, generator: torch.Generator) -> Tensor:
    """A random crop of each image, with other contrast; photographs are mirrored and coloured."""

    def draw(low: float, high: float, channels: int = 1) -> Tensor:
        return low + (high - low) * torch.rand(len(x), channels, 1, 1, generator=generator)

    side = draw(0.45, 1).flatten()
    corner = torch.stack([draw(-1, 1).flatten() * (1 - side) for _ in range(2)], 1)
    maps = torch.cat([side[:, None, None] * torch.eye(2), corner[:, :, None]], 2)
    grid = F.affine_grid(maps, list(x.shape), align_corners=False)
    x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
    if x.shape[1] == 3:
        x = random_flip(x, generator) * draw(0.6, 1.4, 3)
        is_grey = (draw(0, 1) < 0.2).float()
        x = torch.lerp(x, x.mean(1, keepdim=True).expand_as(x), is_grey)
    mean = x.mean((1, 2, 3), keepdim=True)
    return (mean + (x - mean) * draw(0.6, 1.4)).clamp(0, 255)


@dataclass(frozen=True)
class WidenedEmbedding(Embedding):
    """An embedding with the features of one more network as a view."""

    more: Network | None = None

    def views(self, x: Tensor) -> list[Tensor]:
        assert self.more is not None
        return [*super().views(x), backbone_features(self.more, x)]


def widen(model: Model, x: Tensor, n_steps: int) -> Model:
    old = model.embedding
    network = learn_view(old.network, torch.cat([x, model.labelled.x]), n_steps)
    wide = WidenedEmbedding(old.network, old.patches, old.centres, network)
    centres = locate_classes(wide.views(model.memory.x), model.memory.y, len(old.prototypes))
    return replace(model, embedding=replace(wide, centres=[*old.centres, centres[-1]]))


# --------------------------------------------------------------------- measurement

HEADS = {
    "head": Head(),
    "head, no curriculum": Head(has_curriculum=False),
    "head, equal sizes": Head(sizes="equal"),
    "head, no sizes": Head(sizes="none"),
}
VIEWS = {"view, 20 steps": 20, "view, 40 steps": 40}


def measure_window(learner: CILF, pool: Pool, rows: Rows, n_true: int) -> Iterator[dict[str, Any]]:
    x = as_tensor(learner._extract_features(pool.X[rows]), learner._network.device)
    for is_given in (True, False):
        began = time.process_time()
        found = learner.detect(pool.X[rows], n_novel=n_true if is_given else None)
        seconds = {"k-means": time.process_time() - began}
        results = {"k-means": (found.cluster, found.novelty)}
        model, k = learner._model(), found.n_novel
        for name, head in HEADS.items():
            began = time.process_time()
            results[name] = tune(place(learner, model, x, found), head) if k else results["k-means"]
            seconds[name] = time.process_time() - began
        if not model.has_frozen_features:
            for name, n_steps in VIEWS.items():
                began = time.process_time()
                wide = widen(model, x, n_steps) if k else model
                again = learner.detector.detect(x, k, wide, 1)
                results[name] = (again.decision.cluster.numpy(), again.novelty.numpy())
                seconds[name] = time.process_time() - began
        is_novel = ~np.isin(pool.y[rows], pool.known)
        for name, (cluster, novelty) in results.items():
            changed = replace(found, cluster=cluster, n_novel=int(cluster.max()) + 1)
            yield {
                "variant": name, "given": is_given, "seconds": seconds[name],
                "auroc": float(roc_auc_score(is_novel, novelty)),
                **score(pool, changed, pool.y[rows], ""),
            }  # fmt: skip


def place(learner: CILF, model: Model, x: Tensor, found: Detection) -> Case:
    window = learner.detector._transform(x, model)
    return Case(
        window.points, window.known,
        torch.cat([window.memory.points, window.held_out.points]),
        torch.cat([window.memory.labels, window.held_out.labels]),
        window.held_out.points, window.held_out.labels,
        torch.from_numpy(found.cluster), found.novelty,
    )  # fmt: skip


def run_cell(name: str, seed: int) -> dict[str, Any]:
    case, pool = CASES[name], Pool(CASES[name], seed)
    learner = CILF(seed=seed, backbone=case.backbone, memory_size=case.memory)
    learner.fit(pool.X[pool.initial], pool.y[pool.initial])
    windows = []
    for number, wanted in enumerate(N_NOVEL.get(name, USUAL_NOVEL)):
        rows = pool.draw_novel(min(wanted, len(pool.novel)), case.usual, 10 if number % 2 else 1)
        n_true = len(np.unique(pool.y[rows])) - len(pool.known)
        windows.append(list(measure_window(learner, pool, rows, n_true)))
    return {"data": name, "seed": seed, "windows": windows} | provenance()


def write_table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Differences from k-means, mean and standard error over the windows."""
    yield "| data | variant | NA, K given | NA, K found | AUROC | seconds |"
    yield "|---|---|---|---|---|---|"
    for data in dict.fromkeys(cell["data"] for cell in cells):
        own = [
            w
            for cell in cells
            if cell["data"] == data
            for window in cell["windows"]
            for w in window
        ]
        for variant in dict.fromkeys(w["variant"] for w in own):
            shown = [
                compare(own, variant, "na", True),
                compare(own, variant, "na", False),
                compare(own, variant, "auroc", True),
            ]
            seconds = np.mean([w["seconds"] for w in own if w["variant"] == variant and w["given"]])
            yield f"| {data} | {variant} | " + " | ".join([*shown, f"{seconds:.1f}"]) + " |"


def compare(own: list[dict[str, Any]], variant: str, metric: str, is_given: bool) -> str:
    values, base = (
        np.array([w[metric] for w in own if w["variant"] == name and w["given"] == is_given])
        for name in (variant, "k-means")
    )
    if variant == "k-means":
        return f"{base.mean():.3f}"
    gain = values - base
    return f"{gain.mean():+.3f} ± {gain.std() / np.sqrt(len(gain)):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--out", type=Path, default=RESULTS / "learnable.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells: list[dict[str, Any]] = []
    if options.out.exists():  # what is there is kept
        cells = json.loads(options.out.read_text())
    done = {(cell["data"], cell["seed"]) for cell in cells}
    for seed in options.seeds:
        for name in options.data:
            if (name, seed) not in done:
                cells.append(run_cell(name, seed))
                options.out.write_text(json.dumps(cells, indent=1) + "\n")
                print(f"{name}, seed {seed}", file=sys.stderr, flush=True)
    table = "\n".join(write_table(sorted(cells, key=lambda c: DATA.index(c["data"])))) + "\n"
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
