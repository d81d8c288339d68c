"""Updates of ``cilf`` beside those that toolkits of incremental learning offer, on the same work.

Five classes of 500 images are fitted, then three updates bring 2, 2 and 1 classes of 200, all
labels given. Every method has the same network, epochs, batch size, optimiser and augmentation,
a memory of 500 images, and sees the same images. All are scored on the same fresh ones. The rivals
are short statements of their papers, so that nothing foreign is needed. ``joint`` keeps every
image and is the bound. A cell is a data set, a seed and a method. Cells that are done are not run
again.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/toolkits.py
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.benchmark.provenance import provenance
from cilf.core.files import replace_file
from cilf.learners import LEARNERS
from cilf.nn.augment import AUGMENTATIONS
from cilf.nn.backbones import make_backbone
from cilf.nn.memory import even_quotas
from cilf.nn.network import as_tensor

sys.path.insert(0, str(Path(__file__).parent))
from count import CASES, load_instances

RESULTS = Path(__file__).parent / "results"
DATA = ("notmnist", "cifar10")
N_FIRST, N_INITIAL, N_ARRIVING = 5, 500, 200  # classes of the fit; images of a class
ARRIVALS = (2, 2, 1)  # classes of each update
N_TEST = 300  # fresh images of each class
MEMORY, EPOCHS, UPDATE_EPOCHS = 500, 20, 15
BATCH, HALF = 64, 32
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, CLIP = 0.01, 0.9, 0.001, 1.0
AUGMENTATION = "shift"
N_FEATURES = 512  # of the network

Loss = Callable[[Tensor, Tensor], Tensor]  # (images, rows) of a batch -> loss


class Work(NamedTuple):
    """The images of each step, a fit and its updates, and those that all steps are tested on."""

    steps: list[tuple[np.ndarray, np.ndarray]]  # images and class numbers, in order of arrival
    test: tuple[np.ndarray, np.ndarray]


def make_work(data: str, seed: int) -> Work:
    """The same images for every method. Classes are numbered in the order in which they come."""
    rng = np.random.default_rng(seed)
    X, y = load_instances(CASES[data].data, seed)
    rows = [rng.permutation(np.flatnonzero(y == label)) for label in rng.permutation(np.unique(y))]
    sizes = [N_INITIAL] * N_FIRST + [N_ARRIVING] * sum(ARRIVALS)
    ends = np.cumsum([0, N_FIRST, *ARRIVALS])

    def take(classes: range, chosen: Callable[[int], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        parts = [chosen(label) for label in classes]
        numbers = np.repeat(list(classes), [len(part) for part in parts])
        return X[np.concatenate(parts)], numbers

    steps = [
        take(range(start, end), lambda label: rows[label][: sizes[label]])
        for start, end in pairwise(ends)
    ]
    return Work(steps, take(range(ends[-1]), lambda label: rows[label][-N_TEST:]))


class Replay:
    """A linear head, trained with cross entropy on the new images and the memory."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.X, self.y = torch.zeros(0), torch.zeros(0, dtype=torch.long)
        self.network, self.head = nn.Module(), nn.Linear(N_FEATURES, 0)
        torch.manual_seed(seed)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        images = as_tensor(X, torch.device("cpu")).float()
        self.mean, self.std = images.mean((0, 2, 3)), images.std((0, 2, 3))
        shape = tuple(images.shape[1:])
        self.network = make_backbone("convnet", shape).to(memory_format=torch.channels_last)
        self._learn(images, torch.from_numpy(y), EPOCHS)

    def start_from(self, fitted: Replay) -> Replay:
        """Take over a fit of a method that fits alike."""
        vars(self).update(copy.deepcopy(vars(fitted)))
        return self

    def update(self, X: np.ndarray, y: np.ndarray) -> None:
        self._learn(as_tensor(X, torch.device("cpu")).float(), torch.from_numpy(y), UPDATE_EPOCHS)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._scores(as_tensor(X, torch.device("cpu")).float()).argmax(1).numpy()

    def _learn(self, X: Tensor, y: Tensor, epochs: int) -> None:
        n_new, n_old = len(y), self.head.out_features
        before = copy.deepcopy((self.network, self.head)) if n_old else None
        self._grow(int(y.max()) + 1)
        if n_old:
            X, y = torch.cat([X, self.X]), torch.cat([y, self.y])
        self.labels = y
        loss = self._make_loss(y, n_new, n_old, before)
        self._train(X, self._make_batches(n_new, len(y)), loss, epochs)
        self._remember(X, y)

    def _grow(self, n_classes: int) -> None:
        """Outputs for new classes beside those of the old ones."""
        old, self.head = self.head, nn.Linear(N_FEATURES, n_classes)
        with torch.no_grad():
            self.head.weight[: old.out_features] = old.weight
            self.head.bias[: old.out_features] = old.bias

    def _make_batches(self, n_new: int, n: int) -> Callable[[], Iterator[Tensor]]:
        """The rows of each batch of an epoch; new images come first."""
        n_batches = math.ceil(n / BATCH)
        return lambda: iter(torch.randperm(n, generator=self.generator).tensor_split(n_batches))

    def _make_loss(self, y: Tensor, n_new: int, n_old: int, before: Any) -> Loss:
        return lambda x, rows: F.cross_entropy(self.head(self._features(x)), y[rows])

    def _train(
        self, X: Tensor, batches: Callable[[], Iterator[Tensor]], loss: Loss, epochs: int
    ) -> None:
        parameters = [*self.network.parameters(), *self.head.parameters()]
        optimizer = torch.optim.SGD(
            parameters, LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True
        )
        augment = AUGMENTATIONS[AUGMENTATION]
        self.network.train()
        for _ in range(epochs):
            for rows in batches():
                value = loss(augment(X[rows], self.generator), rows)
                optimizer.zero_grad()
                value.backward()
                nn.utils.clip_grad_norm_(parameters, CLIP)
                optimizer.step()
        self.network.eval()

    def _features(self, x: Tensor, network: nn.Module | None = None) -> Tensor:
        scaled = (x - self.mean[:, None, None]) / self.std[:, None, None]
        features: Tensor = (self.network if network is None else network)(scaled)
        return features

    @torch.no_grad()
    def _scores(self, X: Tensor) -> Tensor:
        return torch.cat([self.head(self._features(part)) for part in X.split(BATCH)])

    def _remember(self, X: Tensor, y: Tensor) -> None:
        """An even share of each class, at random."""
        n_classes = self.head.out_features
        kept = []
        for label, quota in zip(range(n_classes), even_quotas(MEMORY, n_classes), strict=True):
            kept.append(self._choose(X, torch.nonzero(y == label)[:, 0], quota))
        rows = torch.cat(kept)
        self.X, self.y = X[rows], y[rows]

    def _choose(self, X: Tensor, members: Tensor, n: int) -> Tensor:
        return members[torch.randperm(len(members), generator=self.generator)[:n]]


class BalancedReplay(Replay):
    """The same with equally many images of each class in an epoch."""

    def _make_batches(self, n_new: int, n: int) -> Callable[[], Iterator[Tensor]]:
        chance = 1.0 / torch.bincount(self.labels)[self.labels]
        n_batches = math.ceil(n / BATCH)

        if n == n_new:
            return super()._make_batches(n_new, n)

        def draw() -> Iterator[Tensor]:
            rows = torch.multinomial(chance, n, replacement=True, generator=self.generator)
            return iter(rows.tensor_split(n_batches))

        return draw


class ERACE(Replay):
    """Caccia et al., "New insights on reducing abrupt representation change", ICLR 2022.

    Half of a batch is new and is told apart among the new classes only. The other half is told
    apart among all classes. It is from the memory, which holds the share of the new classes, too.
    """

    def _make_batches(self, n_new: int, n: int) -> Callable[[], Iterator[Tensor]]:
        if n == n_new:
            return super()._make_batches(n_new, n)
        n_batches = math.ceil(n / BATCH)
        share = MEMORY // (int(self.labels.max()) + 1)
        arriving = [torch.nonzero(self.labels[:n_new] == label)[:, 0] for label in self._arriving()]
        chosen = [self._choose(self.X, members, share) for members in arriving]
        memory = torch.cat([torch.arange(n_new, n), *chosen])

        def draw() -> Iterator[Tensor]:
            for new in self._repeat(torch.arange(n_new), n_batches * HALF).split(HALF):
                drawn = torch.randint(len(memory), (HALF,), generator=self.generator)
                yield torch.cat([new, memory[drawn]])

        return draw

    def _arriving(self) -> list[int]:
        return [c for c in range(int(self.labels.max()) + 1) if not bool((self.y == c).any())]

    def _repeat(self, rows: Tensor, n: int) -> Tensor:
        rounds = math.ceil(n / len(rows))
        orders = [torch.randperm(len(rows), generator=self.generator) for _ in range(rounds)]
        return rows[torch.cat(orders)[:n]]

    def _make_loss(self, y: Tensor, n_new: int, n_old: int, before: Any) -> Loss:
        if not n_old:
            return super()._make_loss(y, n_new, n_old, before)

        def measure(x: Tensor, rows: Tensor) -> Tensor:
            logits, labels = self.head(self._features(x)), y[rows]
            among_new = F.cross_entropy(logits[:HALF, n_old:], labels[:HALF] - n_old)
            return among_new + F.cross_entropy(logits[HALF:], labels[HALF:])

        return measure


class ICaRL(Replay):
    """Rebuffi et al., "iCaRL: incremental classifier and representation learning", CVPR 2017.

    Binary cross entropy with the old network's outputs as the targets of old classes, exemplars by
    herding, and the nearest mean of exemplars decides.
    """

    def _make_loss(self, y: Tensor, n_new: int, n_old: int, before: Any) -> Loss:
        one_hot = F.one_hot(y, self.head.out_features).float()

        def measure(x: Tensor, rows: Tensor) -> Tensor:
            target = one_hot[rows]
            if before is not None:
                with torch.no_grad():
                    target[:, :n_old] = torch.sigmoid(before[1](self._features(x, before[0])))
            logits = self.head(self._features(x))
            entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
            return entropy.sum(1).mean()

        return measure

    @torch.no_grad()
    def _directions(self, X: Tensor) -> Tensor:
        return torch.cat([F.normalize(self._features(part)) for part in X.split(BATCH)])

    def _choose(self, X: Tensor, members: Tensor, n: int) -> Tensor:
        """Herding: the next exemplar brings the mean of those so far nearest to the class mean."""
        z = self._directions(X[members])
        chosen: list[int] = []
        total, centre = torch.zeros(z.shape[1]), F.normalize(z.mean(0), dim=0)
        for k in range(min(n, len(members))):
            distances = (centre - (total + z) / (k + 1)).norm(dim=1)
            distances[chosen] = torch.inf
            chosen.append(int(distances.argmin()))
            total = total + z[chosen[-1]]
        return members[chosen]

    def _remember(self, X: Tensor, y: Tensor) -> None:
        super()._remember(X, y)
        z = self._directions(self.X)
        means = [z[self.y == label].mean(0) for label in range(self.head.out_features)]
        self.means = F.normalize(torch.stack(means))

    def _scores(self, X: Tensor) -> Tensor:
        return self._directions(X) @ self.means.T


def make_learner(name: str, **parameters: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        own = {"backbone": "convnet", "memory_size": MEMORY} | parameters
        return LEARNERS[name]().set_params(seed=seed, **own)

    return make


METHODS: dict[str, Callable[[int], Any]] = {
    "cilf": make_learner("cilf"),
    "replay": Replay,
    "replay, balanced": BalancedReplay,
    "iCaRL": ICaRL,
    "ER-ACE": ERACE,
    "joint": make_learner("joint"),
}
SAME_FIT = {"replay, balanced": "replay", "ER-ACE": "replay"}


def run_cells(data: str, seed: int, methods: list[str]) -> Iterator[dict[str, Any]]:
    """A cell of each method. Methods that fit alike start from one fit."""
    work = make_work(data, seed)
    fitted: dict[str, tuple[Any, float]] = {}
    for method in methods:
        start = SAME_FIT.get(method, method)
        if start not in fitted:
            learner = METHODS[start](seed)
            fitted[start] = learner, time_step(learner.fit, work.steps[0])
        learner, seconds = fitted[start]
        if method in SAME_FIT or method in SAME_FIT.values():
            learner = METHODS[method](seed).start_from(learner)
        cell = {"data": data, "seed": seed, "method": method}
        yield cell | follow(learner, work, seconds)


def follow(learner: Any, work: Work, seconds_of_fit: float) -> dict[str, list[float]]:
    """Accuracies after the fit and after each update, and processor seconds of both."""
    seconds, accuracies = [seconds_of_fit], [measure(learner, work, N_FIRST)]
    for X, y in work.steps[1:]:
        seconds.append(time_step(learner.update, (X, y)))
        accuracies.append(measure(learner, work, int(y.max()) + 1))
    return {
        "all": [round(float(np.mean(each)), 4) for each in accuracies],
        "first": [round(float(np.mean(each[:N_FIRST])), 4) for each in accuracies],
        "seconds": [round(each, 2) for each in seconds],
    }


def time_step(learn: Callable[..., Any], step: tuple[np.ndarray, np.ndarray]) -> float:
    """Processor seconds of a fit or an update."""
    started = time.process_time()
    learn(*step)
    return time.process_time() - started


def measure(learner: Any, work: Work, n_classes: int) -> list[float]:
    """The accuracy of each class that the learner knows."""
    X, y = work.test
    X, y = X[y < n_classes], y[y < n_classes]
    right = learner.predict(X) == y
    return [float(right[y == label].mean()) for label in range(n_classes)]


def write_table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """A row for each data set and method: mean and deviation over the seeds."""
    names = ("after the fit", "at the end", "first classes at the end", "fall of first classes")
    heads = ["data", "method", "seeds", *names, "s, fit", "s, one update"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for data in dict.fromkeys(cell["data"] for cell in cells):
        for method in dict.fromkeys(cell["method"] for cell in cells if cell["data"] == data):
            own = [c for c in cells if (c["data"], c["method"]) == (data, method)]
            shown = [
                show([c["all"][0] for c in own]),
                show([c["all"][-1] for c in own]),
                show([c["first"][-1] for c in own]),
                show([c["first"][0] - c["first"][-1] for c in own]),
                f"{np.mean([c['seconds'][0] for c in own]):.1f}",
                f"{np.mean([c['seconds'][1:] for c in own]):.1f}",
            ]
            yield f"| {data} | {method} | {len(own)} | " + " | ".join(shown) + " |"


def show(values: list[float]) -> str:
    deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 1001, 1002])
    parser.add_argument("--out", type=Path, default=RESULTS / "toolkits.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Initializing zero-element")
    cells = json.loads(options.out.read_text()) if options.out.exists() else []
    done = {(cell["data"], cell["seed"], cell["method"]) for cell in cells}
    for seed in options.seeds:
        for data in options.data:
            missing = [m for m in options.methods if (data, seed, m) not in done]
            for cell in run_cells(data, seed, missing):
                cells.append(cell | provenance())
                replace_file(options.out, (json.dumps(cells, indent=1) + "\n").encode())
                print({k: cells[-1][k] for k in list(cells[-1])[:6]}, flush=True)
    order = list(METHODS)  # earlier records of cilf, which METHODS does not name, come first
    cells.sort(
        key=lambda c: (
            DATA.index(c["data"]),
            order.index(c["method"]) if c["method"] in order else -1,
            c["seed"],
        )
    )
    table = "\n".join(write_table(cells)) + "\n"
    replace_file(options.out.with_suffix(".md"), table.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
