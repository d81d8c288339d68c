"""Windows of known classes in any mixture, and the number of novel classes in others.

Each fit of a data set is a cell: it is fitted once, and detects in windows of fresh instances
that are drawn by its seed. Cells that are done are not run again. ``count_report.py`` summarises
all cells in tables and plots.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/count.py --jobs 2
    CILF_DATA=... python benchmarks/count.py --data mnist --seeds 1002 --ablation coverage
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from cilf import CILF, Detection
from cilf.benchmark.provenance import provenance
from cilf.clustering import support, unexplained_mass
from cilf.clustering.support import KnownShares
from cilf.core.files import replace_file
from cilf.data import load_dataset
from cilf.evaluate import metrics

RESULTS = Path(__file__).parent / "results" / "count"
MIXTURES = ("one", "two", "tenfold", "hundredfold", "all")
SIZES = (1, 3, 10, 30, 100, 300)
SMALL_SIZES, BESIDE = (12, 20, 40), (100, 1000)
TARGET_SMALL, N_TARGET_SMALL = (100, 20), 6  # the small class with a target, and its windows
MANY = (10, 12, 20)
P_EDGES = np.linspace(0, 1, 21) + 1e-6  # a p-value at an edge belongs to the lower bin
Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class Case(NamedTuple):
    """A data set and the sizes of its fit, in instances of each class."""

    data: str
    backbone: str
    n_known: int
    initial: int
    memory: int
    usual: int  # in a window
    n_novel: int | None = None  # classes that can be novel; None: all others


CASES = {
    "digits": Case("digits", "auto", 5, 60, 100, 100),
    "mnist": Case("mnist", "convnet", 5, 500, 500, 200),
    "cifar10": Case("cifar10", "convnet", 5, 500, 1000, 200),
    "cifar10-encoder": Case("cifar10", "efficientnet-lite2", 5, 500, 1000, 200),
    "notmnist": Case("notmnist/notmnist.npz", "convnet", 5, 300, 500, 200),
    "newsgroups": Case("newsgroups/newsgroups.csv.gz", "auto", 8, 120, 2000, 150),
    "omniglot": Case("omniglot/omniglot.npz", "convnet", 20, 12, 2000, 20, 60),
    "cifar100-encoder": Case("cifar100", "efficientnet-lite2", 30, 150, 2000, 100, 30),
    "table": Case("table", "auto", 6, 150, 2000, 200),
}


class Pool:
    """Fresh instances of a fitted learner's known classes and of novel ones."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.rng = case, np.random.default_rng(seed)
        X, y = load_instances(case.data, seed)
        classes = self.rng.permutation(np.unique(y))
        self.known = classes[: case.n_known].tolist()
        n_novel = case.n_novel if case.n_novel is not None else len(classes)
        self.novel = classes[case.n_known :][:n_novel].tolist()
        rows = {
            label: self.rng.permutation(np.flatnonzero(y == label)) for label in classes.tolist()
        }
        initial = np.concatenate([rows[label][: case.initial] for label in self.known])
        self.X, self.y, self.initial = X, y, initial
        self.rows = {label: rows[label][case.initial :] for label in self.known}
        self.rows |= {label: rows[label] for label in self.novel}

    def draw(self, sizes: dict[Any, int]) -> Rows:
        """So many instances of each class, or as many as there are."""
        drawn = [self.rng.permutation(self.rows[label])[:n] for label, n in sizes.items()]
        return np.concatenate(drawn)

    def draw_mixture(self, kind: str, n: int) -> Rows:
        """About ``n`` instances of known classes alone."""
        known = self.rng.permutation(np.array(self.known)).tolist()
        if kind == "one":
            return self.draw({known[0]: n})
        if kind == "two":
            return self.draw({known[0]: n - n // 2, known[1]: max(1, n // 2)})
        span = {"all": 1, "tenfold": 10, "hundredfold": 100}[kind]
        weights = span ** -np.linspace(0, 1, len(known))
        counts = np.round(n * weights / weights.sum()).astype(int)
        counts[0] = max(counts[0], 1)
        return self.draw(dict(zip(known, counts.tolist(), strict=True)))

    def draw_novel(self, n_novel: int, usual: int, span: float) -> Rows:
        """All known classes and some novel ones, of sizes up to ``span`` times apart."""
        novel = self.rng.permutation(np.array(self.novel)).tolist()[:n_novel]
        shares = span ** -self.rng.random(len(self.known) + len(novel))
        sizes = np.maximum(5, usual * shares).astype(int).tolist()
        return self.draw(dict(zip([*self.known, *novel], sizes, strict=True)))


def load_instances(name: str, seed: int) -> tuple[Array, Array]:
    if name == "table":
        X, y = make_classification(
            9000, 20, n_informative=12, n_redundant=4, n_classes=12, n_clusters_per_class=2,
            class_sep=2.0, flip_y=0, random_state=seed,
        )  # fmt: skip
        scales = np.random.default_rng(seed).lognormal(0, 1, 20)
        return (X * scales).astype(np.float32), y
    path = Path(os.environ.get("CILF_DATA", ".")) / name
    dataset = load_dataset(str(path) if "/" in name else name)
    parts = (dataset.train, dataset.test)
    return np.concatenate([p.X for p in parts]), np.concatenate([p.y for p in parts])


def draw_windows(pool: Pool, n_repeats: int) -> Iterator[tuple[str, int, Rows]]:
    """Kind, size and instances of each window."""
    for _ in range(n_repeats):
        for kind in MIXTURES:
            for n in SIZES:
                yield f"known, {kind}", n, pool.draw_mixture(kind, n)
        for span in (1, 10):
            for n_novel in range(6):
                rows = pool.draw_novel(n_novel, pool.case.usual, span)
                yield "equal" if span == 1 else "tenfold", n_novel, rows
        if len(pool.novel) >= min(MANY):
            for n_novel in MANY:
                yield "many", n_novel, pool.draw_novel(n_novel, 40, 1)
        for beside in BESIDE:
            for n in SMALL_SIZES:
                for _ in range(N_TARGET_SMALL if (beside, n) == TARGET_SMALL else 1):
                    known, novel = pool.rng.choice(pool.known), pool.rng.choice(pool.novel)
                    yield f"beside {beside}", n, pool.draw({known: beside, novel: n})


def measure_window(learner: CILF, pool: Pool, kind: str, size: int, rows: Rows) -> dict[str, Any]:
    y = pool.y[rows]
    is_novel = ~np.isin(y, pool.known)
    found = learner.detect(pool.X[rows])
    n_true = len(np.unique(y[is_novel]))
    record = {
        "kind": kind, "size": size, "n": len(rows), "true": n_true, "found": found.n_novel,
        "called_novel": float(found.is_novel[~is_novel].mean()) if (~is_novel).any() else None,
        "recall": float(found.is_novel[is_novel].mean()) if n_true else None,
        "confidence": found.count_probability.get(found.n_novel, 0.0),
        "true_probability": found.count_probability.get(n_true, 0.0),
        "known_p": np.histogram(found.novelty_p[~is_novel], P_EDGES)[0].tolist(),
    }  # fmt: skip
    if n_true and (~is_novel).any():
        record["auroc"] = float(roc_auc_score(is_novel, found.novelty))
        record["auroc_p"] = float(roc_auc_score(is_novel, -found.novelty_p))
        record |= score(pool, found, y, "")
        record |= score(pool, learner.detect(pool.X[rows], n_novel=n_true), y, "given_")
    return record


def score(pool: Pool, found: Detection, y: Array, prefix: str) -> dict[str, float]:
    """NA and H of a detection."""
    codes = {label: code for code, label in enumerate([*pool.known, *pool.novel])}
    truth = np.array([codes[label] for label in y.tolist()])
    label = np.array([codes[name] for name in found.label.tolist()])
    n_known = len(pool.known)
    matching = metrics.match_clusters(found.cluster, truth, n_known)
    predicted = metrics.resolve(label, found.cluster, matching)
    return {
        f"{prefix}na": metrics.normalized_accuracy(truth, predicted, n_known),
        f"{prefix}h": metrics.harmonic_accuracy(truth, predicted, n_known),
    }


def assume_equal_proportions() -> AbstractContextManager[Any]:
    count = KnownShares.count

    def count_equally(*arguments: Any) -> KnownShares:
        shares = count(*arguments)
        even = torch.full_like(shares.window, int(shares.window.sum()) // len(shares.window))
        return KnownShares(shares.inside, shares.total, even)

    return patch.object(KnownShares, "count", count_equally)


def judge_clusters_alone() -> AbstractContextManager[Any]:
    """Each cluster has its own support, whatever that of its instances is elsewhere."""
    pool = unexplained_mass._pool_support

    def keep_own(evidence: Any, measured: dict[int, list[float]], *rest: Any) -> Any:
        pooled = pool(evidence, measured, *rest)
        own = {k: np.array(each, dtype=np.float32) for k, each in measured.items()}
        return {k: replace(each, support=own[k]) for k, each in pooled.items()}

    return patch.object(unexplained_mass, "_pool_support", keep_own)


ABLATIONS = {
    "none": lambda: nullcontext(),
    "coverage": lambda: patch.object(support, "MOST_COVERAGE", 0.0),
    "p-values": lambda: patch.object(support, "P_WEIGHT", 0.0),
    "proportions": assume_equal_proportions,
    "pooling": judge_clusters_alone,
    "sizes": lambda: nullcontext(),  # even_share=0
    "held-out": lambda: nullcontext(),  # calibration_size=0
}


def run_cell(name: str, seed: int, n_repeats: int, ablation: str, out: Path) -> Path:
    path = out / f"{name}-{seed}{'' if ablation == 'none' else '-no-' + ablation}.json"
    if path.exists():
        return path
    torch.set_num_threads(1)
    case = CASES[name]
    pool = Pool(case, seed)
    learner = CILF(seed=seed, backbone=case.backbone, memory_size=case.memory)
    if ablation == "held-out":
        learner.set_params(calibration_size=0)
    if ablation == "sizes":
        learner.set_params(detector__count__even_share=0.0)
    learner.fit(pool.X[pool.initial], pool.y[pool.initial])
    with ABLATIONS[ablation]():
        windows = [measure_window(learner, pool, *w) for w in draw_windows(pool, n_repeats)]
    cell = {"case": case._asdict(), "data": name, "seed": seed, "ablation": ablation}
    replace_file(path, json.dumps(cell | provenance() | {"windows": windows}).encode())
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1002, 1003])
    parser.add_argument("--repeats", type=int, default=2, help="windows of each kind and size")
    parser.add_argument("--ablation", default="none", choices=ABLATIONS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cells = [(name, seed) for seed in options.seeds for name in options.data]
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [
            pool.submit(run_cell, name, seed, options.repeats, options.ablation, options.out)
            for name, seed in cells
        ]
        for number, job in enumerate(as_completed(jobs), 1):
            print(f"{number} of {len(jobs)}: {job.result().stem}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
