"""The learnable step of the detector, part by part, and a view without labels beside it.

The *head* is what `detect` learns on a window (`cilf.learners.cilf.window_head`). Variants leave
out one part of it, or add a curriculum: the head then learns from the surest instances first. A
*view without labels* is the output of a copy of the network that was trained on the window and the
labelled instances together, by VICReg on random crops and colours. It is one more view to cluster
on, and no default: docs/methods/cilf.md has the table.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/learnable.py
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

from cilf import CILF
from cilf.benchmark.provenance import provenance
from cilf.core.files import replace_file
from cilf.learners.cilf.detect import Detector, Model
from cilf.learners.cilf.embedding import Embedding, locate_classes
from cilf.learners.cilf.window_head import WindowHead
from cilf.nn.augment import random_flip
from cilf.nn.network import Network, as_tensor, backbone_features

sys.path.insert(0, str(Path(__file__).parent))
from count import CASES, Pool, Rows, score

RESULTS = Path(__file__).parent / "results"
DATA = (
    "mnist", "cifar10", "cifar10-encoder", "notmnist", "omniglot", "newsgroups", "table", "digits"
)  # fmt: skip
N_NOVEL = {"omniglot": (5, 3, 8, 5, 10, 2)}  # in each window; sizes are equal, tenfold, equal, ...
USUAL_NOVEL = (2, 3, 1, 4, 3, 2)
BATCH = 128


def weigh_equally() -> AbstractContextManager[Any]:
    """Labelled instances weigh the same, whatever proportions their classes have in the window."""
    start = WindowHead.start.__func__  # type: ignore[attr-defined]

    def start_equally(cls: type[WindowHead], *arguments: Any) -> WindowHead:
        head: WindowHead = start(cls, *arguments)
        n_labelled = len(head.labels)
        weights = head.weights.clone()
        weights[head.n_window :] = head.n_window / n_labelled
        return replace(head, weights=weights)

    return patch.object(WindowHead, "start", classmethod(start_equally))


def learn_easy_first() -> AbstractContextManager[Any]:
    """Only the surest instances have a target at first: 20 %, 60 %, then all, as the paper's."""
    shares = [0.2, 0.6, 1.0]

    def classify_some(head: WindowHead, assignment: Tensor, n_classes: int) -> Tensor:
        state = vars(head)
        n_easy = round(shares[min(state.get("round", 0), 2)] * head.n_window)
        hard = state.get("order", torch.arange(head.n_window))[n_easy:]
        targets = F.one_hot(torch.cat([assignment, head.labels]), n_classes).to(head.features)
        targets[hard] = targets.mean(0)
        answers = head.leave_out(targets)[: head.n_window]
        best = answers.topk(min(2, n_classes)).values
        state["order"] = (best[:, 0] - best[:, -1]).argsort(descending=True)
        state["round"] = state.get("round", 0) + 1
        return answers

    return patch.object(WindowHead, "classify", classify_some)


@dataclass(frozen=True)
class Variant:
    """A detector, and a change of its head that no parameter makes."""

    detector: Detector = Detector()
    change: Callable[[], AbstractContextManager[Any]] = nullcontext
    n_view_steps: int = 0


VARIANTS = {
    "no head": Variant(Detector(head_weight=0.0)),
    "head": Variant(),
    "head, no rounds": Variant(Detector(head_rounds=0)),
    "head, no proportions": Variant(change=weigh_equally),
    "head, with a curriculum": Variant(change=learn_easy_first),
    "head, view of 20 steps": Variant(n_view_steps=20),
}


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
    centres = locate_classes(wide.views, model.memory.x, model.memory.y, len(old.prototypes))
    return replace(model, embedding=replace(wide, centres=[*old.centres, centres[-1]]))


# --------------------------------------------------------------------- measurement


def measure_window(learner: CILF, pool: Pool, rows: Rows, n_true: int) -> Iterator[dict[str, Any]]:
    x = as_tensor(learner._extract_features(pool.X[rows]), learner._network.device)
    is_novel = ~np.isin(pool.y[rows], pool.known)
    for name, variant in VARIANTS.items():
        model = learner._model()
        if variant.n_view_steps and model.has_frozen_features:
            continue
        for is_given in (True, False):
            began = time.process_time()
            with variant.change():
                wide = widen(model, x, variant.n_view_steps) if variant.n_view_steps else model
                found = variant.detector.detect(x, n_true if is_given else None, wide, 1)
            seconds = time.process_time() - began
            detection = replace(
                learner.detect(pool.X[rows], n_novel=0),
                cluster=found.decision.cluster.numpy(),
                label=learner.classes_[learner._readouts.label(model.embedding.views(x))],
                n_novel=found.n_novel,
            )
            yield {
                "variant": name, "given": is_given, "seconds": seconds, "n_true": n_true,
                "found": found.n_novel,
                "auroc": float(roc_auc_score(is_novel, found.novelty.numpy())),
                **score(pool, detection, pool.y[rows], ""),
            }  # fmt: skip


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
    """Differences from the detector without a head, mean and standard error over the windows."""
    yield "| data | variant | windows | NA, K given | NA, K found | AUROC | seconds |"
    yield "|---|---|---|---|---|---|---|"
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
            given = [w["seconds"] for w in own if w["variant"] == variant and w["given"]]
            cells_of_row = [data, variant, str(len(given)), *shown, f"{np.mean(given):.1f}"]
            yield f"| {' | '.join(cells_of_row)} |"


def compare(own: list[dict[str, Any]], variant: str, metric: str, is_given: bool) -> str:
    values, base = (
        np.array([w[metric] for w in own if w["variant"] == name and w["given"] == is_given])
        for name in (variant, "no head")
    )
    if variant == "no head":
        return f"{base.mean():.3f}"
    gain = values - base
    return f"{gain.mean():+.3f} ± {gain.std() / np.sqrt(len(gain)):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1008, 1009])
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
                replace_file(options.out, (json.dumps(cells) + "\n").encode())
                print(f"{name}, seed {seed}", file=sys.stderr, flush=True)
    table = "\n".join(write_table(sorted(cells, key=lambda c: DATA.index(c["data"])))) + "\n"
    options.out.with_suffix(".md").write_text(table)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
