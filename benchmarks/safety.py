"""Does an update go through if its labels are right, and not if they are wrong?

Each cell is a kind of data and a seed: five classes of CIFAR-10 are fitted through the frozen
encoder, and an update brings two novel classes and five images of each known one. ``photos`` are
single images, ``few`` are as many as ``bursts`` has scenes. ``bursts`` are three to six frames of
each image, shifted and noisy. The update is
made with right labels and with a third of one novel class mislabelled: as a known class, as the
other novel class or as any class, by the seed. The loss of known classes that the update shows is
compared with that on the test images, which nobody has seen. The accuracy of the fit on bursts is
compared with that on a noisy frame of each test image, too.

``before`` is the rule of earlier versions: near-duplicates on both sides of the split, no check of
labels, and a refusal if the held-out accuracy falls by 0.05 on average or 0.15 in a class.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/safety.py
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from cilf import workflow
from cilf.benchmark.provenance import provenance
from cilf.core.files import replace_file
from cilf.data import Instances, load_dataset
from cilf.data.dataset import Dataset
from cilf.workflow import UpdateResult
from cilf.workflow.comparison import average_scores

RESULTS = Path(__file__).parent / "results"
KINDS, RULES = ("photos", "few", "bursts"), ("before", "now")
BACKBONE, MEMORY = "efficientnet-lite2", 1000
N_KNOWN, N_NOVEL = 5, 2
N_FITTED = {"photos": 200, "few": 45, "bursts": 45}  # images of a class
N_NEW = {"photos": 60, "few": 20, "bursts": 20}
N_NAMED = 5  # images of each known class in an update
N_TEST = 150  # of each class
FRAMES, SHIFT, NOISE = (3, 6), 1, 6.0
WRONG = ("as a known class", "as the other novel class", "as any class")
OLD_TOLERANCE, OLD_CLASS_TOLERANCE = 0.05, 0.15
SEEDS = range(1000, 1005)
Array = npt.NDArray[Any]


class Cell:
    """The images of a fit, of an update and of the test, and the labels of the update."""

    def __init__(self, data: Dataset, kind: str, seed: int) -> None:
        self.kind, self.seed, self.rng = kind, seed, np.random.default_rng(seed)
        classes = self.rng.permutation(data.classes).tolist()[: N_KNOWN + N_NOVEL]
        self.known, self.novel = classes[:N_KNOWN], classes[N_KNOWN:]
        X, y, n = data.train.X, data.train.y, N_FITTED[kind]
        rows = {label: self.rng.permutation(np.flatnonzero(y == label)) for label in classes}
        fitted = np.concatenate([rows[label][:n] for label in self.known])
        new = [rows[label][n : n + N_NAMED] for label in self.known]
        new += [rows[label][: N_NEW[kind]] for label in self.novel]
        self.fitted = self.take(X, y, fitted)[:2]
        self.new, self.right, self.scene = self.take(X, y, np.concatenate(new))
        test = [np.flatnonzero(data.test.y == label)[:N_TEST] for label in self.known]
        self.test = data.test.X[np.concatenate(test)], data.test.y[np.concatenate(test)]
        frames = self.test[0] if kind != "bursts" else np.stack([*map(self.shoot, self.test[0])])
        self.test_frames = frames, self.test[1]

    def take(self, X: Array, y: Array, rows: Array) -> tuple[Array, Array, Array]:
        """Images, their labels and the rows that they come from."""
        if self.kind != "bursts":
            return X[rows], y[rows], rows
        scene = np.repeat(rows, self.rng.integers(FRAMES[0], FRAMES[1] + 1, len(rows)))
        frames = [self.shoot(X[row]) for row in scene.tolist()]
        return np.stack(frames), y[scene], scene

    def shoot(self, image: Array) -> Array:
        moved = np.roll(image, self.rng.integers(-SHIFT, SHIFT + 1, 2), (0, 1))
        frame: Array = np.clip(moved + self.rng.normal(0, NOISE, image.shape), 0, 255)
        return frame.astype(np.uint8)

    def mislabel(self) -> Array:
        """The labels of the update, wrong for a third of the images of one novel class."""
        rng, wrong, target = np.random.default_rng(self.seed), self.right.copy(), self.novel[0]
        scenes = rng.permutation(np.unique(self.scene[self.right == target]))
        for scene in scenes[: len(scenes) // 3]:
            others = [label for label in (*self.known, *self.novel) if label != target]
            taken = {
                "as a known class": self.known[0],
                "as the other novel class": self.novel[1],
                "as any class": others[rng.integers(len(others))],
            }[WRONG[self.seed % len(WRONG)]]
            wrong[self.scene == scene] = taken
        return wrong


def run_cell(data: Dataset, kind: str, seed: int) -> Iterator[dict[str, Any]]:
    """A record for each rule and each set of labels."""
    cell = Cell(data, kind, seed)
    for rule in RULES:
        with tempfile.TemporaryDirectory() as folder, use_rule(rule):
            X, y = cell.fitted
            np.savez(f"{folder}/known.npz", x=X, y=y)
            parameters = {"seed": seed, "backbone": BACKBONE, "memory_size": MEMORY}
            fitted = workflow.fit(f"{folder}/known.npz", f"{folder}/model", parameters=parameters)
            real = measure(f"{folder}/model", *cell.test)
            own = average_scores(fitted.held_out.values())
            about = {
                "kind": kind,
                "seed": seed,
                "rule": rule,
                "fit": {
                    "test": fitted.mean_accuracy,
                    "held_out": own and own.mean,
                    "real": real,
                    "real_on_frames": measure(f"{folder}/model", *cell.test_frames),
                },
            }
            for labels, given in (("right", cell.right), ("wrong", cell.mislabel())):
                yield (
                    about | {"labels": labels} | update(f"{folder}/model", cell, given, rule, real)
                )


def update(model: str, cell: Cell, labels: Array, rule: str, before: float) -> dict[str, Any]:
    """What an update shows and does. The model is as before afterwards."""
    ids = np.array([f"{row}" for row in range(len(labels))])
    given = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    start, refused = time.perf_counter(), False
    try:
        result = workflow.update(model, Instances(cell.new, ids), given)
    except workflow.WouldForget as stopped:
        result, refused = stopped.result, True
    seconds = time.perf_counter() - start
    if refused:
        workflow.update(model, Instances(cell.new, ids), given, force=True)
    real = before - measure(model, *cell.test)
    workflow.ModelFolder.open(model).rollback()
    warned = bool(result.doubts)
    if rule == "before":
        refused, warned = is_refused_by_old_rule(result), warns_by_old_rule(result)
    suspects = {identity for doubts in result.doubts for identity in doubts.suspects}
    wrong = set(ids[labels != cell.right].tolist())
    mislabelled = set(labels[labels != cell.right].tolist())
    named = [{doubts.label, doubts.likely} for doubts in result.doubts if doubts.label]
    low, high = result.paired_loss.interval()
    return {
        "refused": refused, "warned": warned,
        "shown": result.loss, "low": low, "high": high, "real": real,
        "n_wrong": len(wrong), "suspects": len(suspects), "wrong_suspects": len(suspects & wrong),
        "doubts": len(named), "doubts_about_wrong": sum(bool(n & mislabelled) for n in named),
        "seconds": seconds,
    }  # fmt: skip


def use_rule(rule: str) -> AbstractContextManager[Any]:
    """Split as earlier versions did, and check no labels."""
    stack = ExitStack()
    if rule == "before":
        for where in ("cilf.learners.base", "cilf.data.npz"):
            stack.enter_context(patch(f"{where}.group_near_duplicates", number_apart))
        stack.enter_context(patch("cilf.learners.base.Learner.check_labels", lambda *_: None))
    return stack


def number_apart(*parts: Array) -> Array:
    return np.arange(sum(map(len, parts)))


def is_refused_by_old_rule(result: UpdateResult) -> bool:
    losses = [change.loss for change in result.changes if change.loss == change.loss]
    return result.loss > OLD_TOLERANCE or max(losses) > OLD_CLASS_TOLERANCE


def warns_by_old_rule(result: UpdateResult) -> bool:
    return any(change.loss > OLD_TOLERANCE for change in result.changes)


def measure(model: str, X: Array, y: Array) -> float:
    """The mean of the accuracies of classes."""
    right = workflow.load_model(model).learner.predict(X) == y
    return float(np.mean([right[y == label].mean() for label in np.unique(y)]))


def write_table(cells: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| data | rule | right labels refused | warned | wrong labels refused | refused or warned "
        "| wrong ones among suspects | doubts that name a class with wrong labels "
        "| loss shown - real: mean, root mean square | real loss in the interval "
        "| accuracy of the fit - real: test split | held out | test split - frames |"
    )
    yield "|---" * 13 + "|"
    for kind in KINDS:
        for rule in RULES:
            own = [c for c in cells if (c["kind"], c["rule"]) == (kind, rule)]
            if own:
                yield f"| {kind} | {rule} | " + " | ".join(summarise(own)) + " |"


def summarise(cells: list[dict[str, Any]]) -> Iterator[str]:
    right, wrong = ([c for c in cells if c["labels"] == which] for which in ("right", "wrong"))
    yield f"{sum(c['refused'] for c in right)} of {len(right)}"
    yield f"{sum(c['warned'] and not c['refused'] for c in right)} of {len(right)}"
    yield f"{sum(c['refused'] for c in wrong)} of {len(wrong)}"
    yield f"{sum(c['refused'] or c['warned'] for c in wrong)} of {len(wrong)}"
    n = sum(c["suspects"] for c in wrong)
    yield f"{sum(c['wrong_suspects'] for c in wrong)} of {n}" if n else "none"
    n = sum(c["doubts"] for c in wrong)
    yield f"{sum(c['doubts_about_wrong'] for c in wrong)} of {n}" if n else "none"
    errors = np.array([c["shown"] - c["real"] for c in cells])
    yield f"{errors.mean():+.3f}, {np.sqrt((errors**2).mean()):.3f}"
    yield f"{sum(c['low'] <= c['real'] <= c['high'] for c in cells)} of {len(cells)}"
    for shown, real in (("test", "real"), ("held_out", "real"), ("test", "real_on_frames")):
        yield f"{np.mean([c['fit'][shown] - c['fit'][real] for c in right]):+.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=RESULTS / "safety.json")
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    if options.out.exists():  # what is there is kept
        cells = json.loads(options.out.read_text())["cells"]
    done = {(cell["kind"], cell["seed"]) for cell in cells}
    data = load_dataset("cifar10")
    for seed in options.seeds:
        for kind in options.kinds:
            if (kind, seed) not in done:
                for record in run_cell(data, kind, seed):
                    print(record, flush=True)
                    cells.append(record)
                save(options.out, cells)
    print("\n".join(write_table(cells)))
    return 0


def save(out: Path, cells: list[dict[str, Any]]) -> None:
    record = {"provenance": provenance(), "cells": cells}
    replace_file(out, (json.dumps(record, indent=1) + "\n").encode())
    table = "\n".join(write_table(cells)) + "\n"
    replace_file(out.with_suffix(".md"), table.encode())


if __name__ == "__main__":
    sys.exit(main())
