"""How do the days of a person with photographs go, from the first fit to the fifth day?

Each seed draws classes of CIFAR-100. Photographs of twelve known classes lie in class folders, and
those of each day in one folder with names that tell nothing. Every day goes through the functions
that the command line calls: ``detect``, names in the tables of the findings, ``update``, and
``predict`` on photographs of all classes so far that no model has seen.

A person is simulated. A cluster of which at least ``NAMED_SHARE`` are of one class gets its name,
and at most ``MOST_SINGLE`` others in it get their own. In a cluster that is more mixed, the first
``MOST_SINGLE`` members get their names and the others none. Then the person looks for new classes
that have fewer than ``FEWEST_NAMED`` labels, from the most novel instance on, and names each
instance on the way. If an update is refused because of its labels, the person looks at the
instances that it names, corrects them, and updates again, with ``force`` if need be. Every name
that is given counts as one label.

On the day of bursts the same model also detects in the same photographs without noise, and in one
of each, which says what part of the false alarms is due to noise and to repetition.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/practice.py
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from cilf import workflow
from cilf.benchmark.provenance import provenance
from cilf.core.files import replace_file
from cilf.data import load_dataset
from cilf.data.dataset import Dataset
from cilf.workflow import Findings, ModelFolder, UpdateResult
from cilf.workflow.comparison import average_scores, score_kept, select_losses
from cilf.workflow.model_update import TOLERANCE

RESULTS, WORK = Path(__file__).parent / "results", Path("runs/practice")
N_KNOWN, N_FITTED, N_UNSEEN = 12, 80, 100  # classes, and photographs of each class
NAMED_SHARE, MOST_SINGLE, FEWEST_NAMED = 0.7, 10, 5
FRAMES, SHIFT, NOISE = (3, 6), 2, 6.0
SEEDS = (1000, 1001, 1002)
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Day:
    """What arrives on a day.

    Attributes:
        title: what the record calls it.
        novel: the number of photographs of each new class.
        known: the smallest and the largest number of photographs of a known class.
        n_known: the number of known classes; all if None.
        bursts: whether each photograph comes as several frames.
    """

    title: str
    novel: tuple[int, ...] = ()
    known: tuple[int, int] = (10, 25)
    n_known: int | None = None
    bursts: bool = False


DAYS = (
    Day("new classes of 100, 40 and 12", novel=(100, 40, 12)),
    Day("quiet, other proportions", known=(2, 50)),
    Day("bursts, a new class of 60", novel=(60,), known=(4, 12), bursts=True),
    Day("one known class only", known=(60, 60), n_known=1),
    Day("a new class of 60", novel=(60,)),
)


class Album(NamedTuple):
    """The photographs of a day, and what they show."""

    day: Day
    pictures: Array
    labels: list[str]
    arrived: list[str]  # classes that start on this day
    others: dict[str, tuple[Array, list[str]]]  # other forms of the same day

    @property
    def truth(self) -> dict[str, str]:
        """The class of each file."""
        return {f"IMG_{i:04}.png": label for i, label in enumerate(self.labels)}

    def replace(self, name: str) -> Album:
        """The day in another form."""
        pictures, labels = self.others[name]
        return self._replace(pictures=pictures, labels=labels, others={})


class Plan:
    """The photographs of a fit, of each day and of the test, by the seed."""

    def __init__(self, data: Dataset, seed: int) -> None:
        self.data, self.rng = data, np.random.default_rng(seed)
        drawn = self.rng.permutation(data.classes).tolist()
        self.first, self._later = drawn[:N_KNOWN], iter(drawn[N_KNOWN:])
        self.classes, self._left = (
            list(self.first),
            {label: self._shuffle(label) for label in drawn},
        )
        self.fitted = {label: data.train.X[self._take(label, N_FITTED)] for label in self.first}
        self.albums = [self._fill(day) for day in DAYS]

    def _shuffle(self, label: str) -> list[int]:
        rows: list[int] = self.rng.permutation(np.flatnonzero(self.data.train.y == label)).tolist()
        return rows

    def _take(self, label: str, n: int) -> list[int]:
        taken, self._left[label] = self._left[label][:n], self._left[label][n:]
        return taken

    def _fill(self, day: Day) -> Album:
        known = self.rng.permutation(self.classes).tolist()[: day.n_known]
        sizes = {label: int(self.rng.integers(day.known[0], day.known[1] + 1)) for label in known}
        arrived = [next(self._later) for _ in day.novel]
        sizes |= dict(zip(arrived, day.novel, strict=True))
        self.classes += arrived
        rows = np.concatenate([self._take(label, n) for label, n in sizes.items()])
        if day.bursts:
            rows = np.repeat(rows, self.rng.integers(FRAMES[0], FRAMES[1] + 1, len(rows)))
        rows = self.rng.permutation(rows)
        X, y = self.data.train.X[rows], self.data.train.y[rows].tolist()
        if not day.bursts:
            return Album(day, X, y, arrived, {})
        clean, noisy = (np.stack(frames) for frames in zip(*map(self._shoot, X), strict=True))
        _, first = np.unique(rows, return_index=True)
        once = noisy[first], [y[row] for row in first.tolist()]
        return Album(day, noisy, y, arrived, {"without noise": (clean, y), "one of each": once})

    def _shoot(self, picture: Array) -> tuple[Array, Array]:
        """A shifted frame, without noise and with it."""
        padded = np.pad(picture, ((SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)), mode="edge")
        top, left = self.rng.integers(0, 2 * SHIFT + 1, 2).tolist()
        frame = padded[top:, left:][: picture.shape[0], : picture.shape[1]]
        noisy = np.clip(frame + self.rng.normal(0, NOISE, frame.shape), 0, 255)
        return frame, noisy.astype(np.uint8)

    def write(self, folder: Path) -> None:
        """Write all photographs as a person has them."""
        for label, pictures in self.fitted.items():
            write_pictures(folder / "known" / label, pictures)
        for number, album in enumerate(self.albums, start=1):
            write_pictures(folder / f"day-{number}", album.pictures)
            for name in album.others:
                write_pictures(folder / f"day-{number}, {name}", album.replace(name).pictures)
        test = self.data.test
        for label in self.classes:
            unseen = test.X[test.y == label][:N_UNSEEN]
            write_pictures(folder / "unseen", unseen, prefix=f"{label}-")


def write_pictures(folder: Path, pictures: Array, prefix: str = "IMG_") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"{prefix}{i:04}.png")


# ----------------------------------------------------------------- the person


@dataclass
class Names:
    """The names that a person gives on a day."""

    clusters: dict[int, str] = field(default_factory=dict)  # by number from 0
    rows: dict[int, str] = field(default_factory=dict)
    n_searched: int = 0
    n_corrected: int = 0

    @property
    def n_labels(self) -> int:
        return len(self.clusters) + len(self.rows) + self.n_corrected

    def of_rows(self, cluster: Array) -> dict[int, str]:
        """The name of each row, its own or that of its cluster."""
        named = {row: self.clusters[c] for row, c in enumerate(cluster) if c in self.clusters}
        return named | self.rows


def name_findings(findings: Findings, album: Album) -> Names:
    """What a person who knows the classes writes into the tables."""
    found, names = findings.assignments, Names()
    truth = [album.truth[identity] for identity in found.ids.tolist()]
    order = np.argsort(-found.novelty, kind="stable").tolist()
    for cluster in range(len(found.cluster_sizes)):
        members = [row for row in order if found.cluster[row] == cluster]
        (label, count), *_ = Counter(truth[row] for row in members).most_common()
        if count >= NAMED_SHARE * len(members):
            names.clusters[cluster] = label
            members = [row for row in members if truth[row] != label]
        names.rows |= {row: truth[row] for row in members[:MOST_SINGLE]}
    for row in order:
        given = names.of_rows(found.cluster)
        counts = Counter(truth[row] for row, label in given.items() if label == truth[row])
        if all(counts[label] >= FEWEST_NAMED for label in album.arrived):
            break
        if row not in given:
            names.rows[row] = truth[row]
            names.n_searched += 1
    return names


def write_names(findings: Findings, names: Names) -> None:
    """Fill the column of names of both tables."""
    ids = findings.assignments.ids.tolist()
    rows = {ids[row]: name for row, name in names.rows.items()}
    clusters = {str(number + 1): name for number, name in names.clusters.items()}
    for table, key, written in (("clusters", "cluster", clusters), ("findings", "identity", rows)):
        path = findings.path / f"{table}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]) if lines else [key, "name"])
            writer.writeheader()
            writer.writerows(line | {"name": written.get(line[key], "")} for line in lines)


class Learned(NamedTuple):
    """How an update went."""

    outcome: str
    result: UpdateResult | None
    problems: list[str]


def learn(model: Path, findings: Findings, names: Names, album: Album) -> Learned:
    """Update as a person does, who looks again if the update is refused."""
    if not names.n_labels:
        return Learned("nothing to learn", None, [])
    write_names(findings, names)
    about, labels = workflow.read_labels(findings.path)
    problems: list[str] = []
    for attempt in ("accepted", "accepted after corrections"):
        try:
            result = workflow.update(model, about, labels)
        except workflow.WouldForget as refused:
            problems.append(str(refused))
            suspects = {s for doubts in refused.result.doubts for s in doubts.suspects}
            names.n_corrected += len(suspects)
            labels |= {identity: album.truth[identity] for identity in suspects}
        else:
            return Learned(f"{attempt}{', warned' * is_warned(result)}", result, problems)
    return Learned("forced", workflow.update(model, about, labels, force=True), problems)


def is_warned(result: UpdateResult) -> bool:
    return bool(result.doubts) or bool(select_losses(result.changes, TOLERANCE))


# ----------------------------------------------------------------- a seed


def live(data: Dataset, seed: int, folder: Path, done: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The record of the fit (day 0) and of each day that is not done yet."""
    plan, model = Plan(data, seed), folder / "model"
    if not done:
        plan.write(folder)
        yield {"seed": seed, "day": 0, "title": "fit"} | fit(plan, folder, seed)
    for number, album in enumerate(plan.albums, start=1):
        if number not in done:
            about = {"seed": seed, "day": number, "title": album.day.title}
            yield about | spend_day(plan, album, folder, number)
    print(f"seed {seed}: {model}", file=sys.stderr)


def fit(plan: Plan, folder: Path, seed: int) -> dict[str, Any]:
    model, start = folder / "model", time.perf_counter()
    fitted = workflow.fit(
        str(folder / "known"), model, parameters={"seed": seed}, again=model.exists()
    )
    seconds = time.perf_counter() - start
    return {
        "seconds_fit": seconds,
        "test": fitted.mean_accuracy,
        "held_out": measure_held_out(model),
        "backbones": workflow.load_model(model).learner.compared_backbones,
        "accuracy": measure(plan.first, folder),
        "version": fitted.event.version,
    }


def spend_day(plan: Plan, album: Album, folder: Path, number: int) -> dict[str, Any]:
    model, start = folder / "model", time.perf_counter()
    findings = detect_in(str(number), folder)
    seconds_detect = time.perf_counter() - start
    before = set(workflow.load_model(model).learner.classes_.tolist())
    others = {
        name: judge(detect_in(f"{number}, {name}", folder), album.replace(name), before)
        for name in album.others
    }
    names = name_findings(findings, album)
    start = time.perf_counter()
    learned = learn(model, findings, names, album)
    seconds_update = time.perf_counter() - start
    seen = [*plan.first, *(label for a in plan.albums[:number] for label in a.arrived)]
    return {
        **judge(findings, album, before),
        "others": others,
        "labels": names.n_labels,
        "of_them_clusters": len(names.clusters),
        "of_them_searched": names.n_searched,
        "of_them_suspects": names.n_corrected,
        "update": learned.outcome,
        "problems": learned.problems,
        "shown_loss": None if learned.result is None else learned.result.paired_loss.to_json(),
        "held_out": measure_held_out(model),
        "accuracy": measure(seen, folder),
        "seconds_detect": seconds_detect,
        "seconds_update": seconds_update,
        "version": ModelFolder.open(model).current,
    }


def detect_in(day: str, folder: Path) -> Findings:
    return workflow.detect(
        folder / "model", folder / f"day-{day}", folder / f"found-{day}", overwrite=True
    )


def judge(findings: Findings, album: Album, known: set[str]) -> dict[str, Any]:
    """What was found, compared with what is there."""
    found = findings.assignments
    truth = np.array([album.truth[identity] for identity in found.ids.tolist()])
    is_new, is_found = ~np.isin(truth, list(known)), found.cluster >= 0
    clusters = [
        Counter(truth[found.cluster == cluster].tolist()).most_common(1)[0]
        for cluster in range(len(found.cluster_sizes))
    ]
    return {
        "instances": len(truth),
        "there": len(set(truth[is_new].tolist())),
        "found": len({label for label, _ in clusters} - known),
        "clusters": len(clusters),
        "pure": sum(count for _, count in clusters),
        "in_clusters": int(is_found.sum()),
        "known": int((~is_new).sum()),
        "false_alarms": int((is_found & ~is_new).sum()),
        "novel": int(is_new.sum()),
        "missed": int((~is_found & is_new).sum()),
    }


def measure_held_out(model: Path) -> list[float]:
    """The mean accuracy that the model itself shows, with its bounds."""
    kept = score_kept(workflow.load_model(model).learner)
    average = average_scores(change.held_out for change in kept)
    return [] if average is None else [average.mean, average.low, average.high]


def measure(classes: Sequence[str], folder: Path) -> dict[str, float]:
    """The mean accuracy on unseen photographs: of these classes, of the first and of later ones."""
    predicted = workflow.predict(folder / "model", folder / "unseen")
    truth = np.array([identity.rpartition("-")[0] for identity in predicted.ids.tolist()])
    right = predicted.labels == truth
    each = {label: float(right[truth == label].mean()) for label in classes}
    parts = {"all": classes, "first": classes[:N_KNOWN], "later": classes[N_KNOWN:]}
    return {
        name: float(np.mean([each[label] for label in part]))
        for name, part in parts.items()
        if part
    }


# ----------------------------------------------------------------- records

HEADS = (
    "seed", "day", "instances", "new classes found / there", "clusters", "purity", "false alarms",
    "novel missed", "labels", "update", "accuracy on unseen photographs: all", "first 12", "later",
    "that the model shows", "seconds: detect", "update",
)  # fmt: skip


def write_table(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"| {' | '.join(HEADS)} |"
    yield "|---" * len(HEADS) + "|"
    for cell in sorted(cells, key=lambda cell: (cell["seed"], cell["day"])):
        yield f"| {' | '.join(format_cell(cell))} |"
        for name, judged in cell.get("others", {}).items():
            other = [str(cell["seed"]), f"the same {name}", *format_judged(judged)]
            yield f"| {' | '.join(other + [''] * (len(HEADS) - len(other)))} |"


def format_cell(cell: Mapping[str, Any]) -> Iterator[str]:
    yield str(cell["seed"])
    yield f"{cell['day']}: {cell['title']}"
    if cell["day"] == 0:
        yield str(N_KNOWN * N_FITTED)
        yield from [""] * 6
        yield f"test split: {cell['test']:.2f}"
    else:
        yield from format_judged(cell)
        yield str(cell["labels"])
        yield cell["update"]
    for part in ("all", "first", "later"):
        yield f"{cell['accuracy'][part]:.2f}" if part in cell["accuracy"] else ""
    shown, low, high = cell["held_out"]
    yield f"{shown:.2f} ({low:.2f}-{high:.2f})"
    yield f"{cell['seconds_detect']:.0f}" if cell["day"] else ""
    yield f"{cell['seconds_update' if cell['day'] else 'seconds_fit']:.0f}"


def format_judged(cell: Mapping[str, Any]) -> Iterator[str]:
    yield str(cell["instances"])
    yield f"{cell['found']} / {cell['there']}"
    yield str(cell["clusters"])
    yield f"{cell['pure'] / cell['in_clusters']:.2f}" if cell["in_clusters"] else ""
    yield f"{cell['false_alarms']} of {cell['known']}"
    yield f"{cell['missed']} of {cell['novel']}" if cell["novel"] else ""


def return_to(model: Path, version: int) -> None:
    """Use the version of the last day that is recorded, if a later one was begun."""
    folder = ModelFolder.open(model)
    if folder.current != version:
        folder.rollback(version)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--work", type=Path, default=WORK, help="the folder of photographs")
    parser.add_argument("--out", type=Path, default=RESULTS / "practice.json")
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    if options.out.exists():  # what is there is kept
        cells = json.loads(options.out.read_text())["cells"]
    data = load_dataset("cifar100")
    for seed in options.seeds:
        folder = options.work / f"seed-{seed}"
        own = [cell for cell in cells if cell["seed"] == seed]
        if len(own) == len(DAYS) + 1:
            continue
        if (folder / "model").exists() and own:
            return_to(folder / "model", own[-1]["version"])
        else:  # the model is gone: its days are lived again
            cells, own = [cell for cell in cells if cell["seed"] != seed], []
        for record in live(data, seed, folder, [cell["day"] for cell in own]):
            print(record, flush=True)
            cells.append(record)
            save(options.out, cells)
    print("\n".join(write_table(cells)))
    return 0


def save(out: Path, cells: list[dict[str, Any]]) -> None:
    record = {"provenance": provenance(), "cells": cells}
    replace_file(out, (json.dumps(record, indent=1) + "\n").encode())
    replace_file(out.with_suffix(".md"), ("\n".join(write_table(cells)) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
