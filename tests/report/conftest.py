"""Run folders made by hand: four windows of digits that hold every case a report must show.

Window 1 finds its two new classes; window 2 has none, and class 0 has vanished; window 3 has two
and none is found; window 4 has three more and finds four clusters, one of which matches nothing.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core import WindowRecord
from cilf.core.random import generator
from cilf.core.types import Array
from cilf.data import Split, load_dataset
from cilf.evaluate.records import RunFolder, Snapshot
from cilf.report.run import Run

NAN = math.nan
PER_CLASS = 20
INITIAL = [3, 0, 8]
NOVEL = [[5, 1], [], [6, 9], [2, 7, 4]]
KNOWN = [[3, 0, 8], [3, 8, 5, 1], [3, 8, 5, 1], [3, 8, 5, 1, 6, 9]]
TO_LEARNER = [{5, 1}, set(), {6, 9}, {6, 9, 2, 7, 4}]  # what it was never told about
CLUSTERS = [{5: 0, 1: 1}, {}, {}, {2: 0, 7: 1, 6: 2}]  # class -> cluster
MATCHED = [["5", "1"], [], [], ["2", "7", "6", ""]]

Rename = Callable[[Any], Any]
MakeRun = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def make_run() -> MakeRun:
    """Write a run folder of ``n`` windows: ``names`` renames classes, ``vectors`` draws strips,
    ``texts`` draws what would break a careless page."""
    return build_run


def build_run(
    path: Path,
    *,
    names: Rename = lambda label: label,
    vectors: bool = False,
    texts: bool = False,
    n: int = 4,
    **changes: Any,
) -> RunFolder:
    folder = RunFolder(path)
    folder.write_run(about(names) | changes)
    folder.write_records(records()[:n])
    for window in range(1, n + 1):
        drawn = make_snapshot(window, names, vectors)
        folder.write_snapshot(window, as_texts(drawn) if texts else drawn)
    return folder


def about(names: Rename) -> dict[str, Any]:
    windows = [
        {
            "novel": [names(c) for c in novel],
            "known": [names(c) for c in known],
            "counts": [[names(c), PER_CLASS] for c in known + novel],
        }
        for novel, known in zip(NOVEL, KNOWN, strict=True)
    ]
    return {
        "learner": "cilf", "data": "digits", "scenario": "multiple", "scale": "smoke", "seed": 0,
        "query": 1.0, "n_novel": None,
        "dataset": {"train_rows": 1437, "test_rows": 360, "n_classes": 10,
                    "instance_shape": [8, 8], "part_of_rows": None},
        "parameters": {"seed": 0, "device": "auto", "epochs": 8, "memory": 100, "alpha": 0.3},
        "stream": {"initial_size": 60, "window_size": PER_CLASS, "n_quiet": 1},
        "plan": {"initial": [names(c) for c in INITIAL], "windows": windows},
        "versions": {"cilf": "0.1.0", "python": "3.12.3", "torch": "2.13", "numpy": "2.3"},
        "commit": "abc1234", "machine": {"system": "Linux", "cpu": "x86", "cores": 2},
        "started": "2026-01-02T03:04:05+00:00",
    }  # fmt: skip


def record(
    window: int, true: int, found: int, scores: tuple[float, ...], **rest: Any
) -> WindowRecord:
    na, macro_f, micro_f, auroc = scores
    read_twice = {
        "h": na, "aks": 0.95, "aus": na, "na": na, "macro_f": macro_f, "micro_f": micro_f,
        "auroc": auroc,
    }  # fmt: skip
    fields: dict[str, Any] = {
        "window": window, "n_known": 5, "n_novel_true": true, "n_novel_planned": true,
        "n_novel_found": found, **read_twice,
        "extra": {f"plan_{name}": value for name, value in read_twice.items()},
        "known_macro_f": 0.94, "known_micro_f": 0.95, "known_auroc": NAN, "open_macro_f": 0.9,
        "open_micro_f": 0.9, "m_new": NAN, "f_new": 0.02, "n_queried": 0, "seconds_detect": 1.25,
        "seconds_update": 0.75,
    }  # fmt: skip
    sizes = {group: len((INITIAL, *NOVEL)[group]) for group in rest["holdout_accuracy"]}
    return WindowRecord(**(fields | rest), holdout_classes=sizes)


def records() -> list[WindowRecord]:
    return [
        record(1, 2, 2, (0.951, 0.94, 0.96, 0.985), m_new=0.04, n_queried=40,
               holdout_accuracy={0: 0.99, 1: 0.94}),
        record(2, 0, 0, (NAN, 0.97, 0.975, NAN), holdout_accuracy={0: 0.98, 1: 0.95, 2: NAN}),
        record(3, 2, 0, (0.48, 0.55, 0.66, 0.71), m_new=1.0,
               holdout_accuracy={0: 0.98, 1: 0.95, 3: 0.0}),
        record(4, 5, 4, (0.82, 0.79, 0.83, 0.93), m_new=0.21, f_new=0.06, n_queried=80,
               holdout_accuracy={0: 0.93, 1: 0.9, 3: 0.55, 4: 0.97}),
    ]  # fmt: skip


def make_snapshot(window: int, names: Rename, vectors: bool) -> Snapshot:
    rng = generator(window, "snapshot")
    classes = KNOWN[window - 1] + NOVEL[window - 1]
    rows = np.concatenate([_rows(c, window) for c in classes])
    train = _digits()
    truth, images = train.y[rows], train.X[rows]
    clusters = CLUSTERS[window - 1]
    cluster = np.array([clusters.get(c, -1) for c in truth.tolist()])
    if window == 4:
        cluster[truth == 4] = np.where(np.arange(PER_CLASS) < 12, 0, 3)  # 4 goes with 2, or astray
        cluster[truth == 8] = np.where(np.arange(PER_CLASS) < 3, 1, -1)
    n_found = len(MATCHED[window - 1])
    matched = [str(names(int(m))) if m else "" for m in MATCHED[window - 1]]
    strips = images.reshape(len(rows), 1, -1)
    label = np.where(np.isin(truth, list(TO_LEARNER[window - 1])), 3, truth)
    made = Snapshot(
        ids=train.ids[rows], map=_map(truth, rng), truth=truth,
        novel=np.isin(truth, list(TO_LEARNER[window - 1])), label=label, cluster=cluster,
        novelty=rng.random(len(rows)).astype(np.float32),
        thumbnails=strips if vectors else images, matched=np.array(matched, dtype=str),
        sizes=np.bincount(cluster[cluster >= 0], minlength=n_found).astype(np.int64),
        texts=np.zeros(len(rows), dtype=str),
    )  # fmt: skip
    return replace(made, truth=_rename(truth, names), label=_rename(label, names))


def as_texts(drawn: Snapshot) -> Snapshot:
    """The same findings about texts from files with long paths."""
    n = len(drawn.ids)
    kinds = [
        "The parcel came late, and the box was open when it got here.",
        '<script>alert(1)</script> & "that" was all it said </title></svg>',
        "",
        "long" * 50,
        "הספר הגיע בזמן, והוא טוב מאוד.",
        "I have used it every day for a month now; the handle is firm, the blade stays sharp, and "
        "it goes into the dishwasher. The lid is the weak part: it does not close on the first "
        "try, nor...",
    ]
    paths = [f"reviews/kitchen & <b>bath</b>/2026/spring/{id_}/text.txt" for id_ in drawn.ids]
    return replace(
        drawn, ids=np.array(paths), thumbnails=np.zeros((n, 0, 0), np.uint8),
        texts=np.array([kinds[i % len(kinds)] for i in range(n)]),
    )  # fmt: skip


@cache
def _digits() -> Split:
    return load_dataset("digits").train


def _rows(label: int, window: int) -> Array:
    rows = np.flatnonzero(_digits().y == label)
    return rows[PER_CLASS * window : PER_CLASS * (window + 1)]


def _map(truth: Array, rng: np.random.Generator) -> Array:
    angle = 2 * np.pi * truth / 10
    centres = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (8 + truth % 3)[:, None]
    return (centres + rng.normal(size=centres.shape)).astype(np.float32)


def _rename(labels: Array, names: Rename) -> Array:
    return np.array([names(label) for label in labels.tolist()])


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The four windows, to be read only."""
    return build_run(tmp_path_factory.mktemp("runs") / "digits")


@pytest.fixture
def run(digits_run: RunFolder) -> Run:
    """The four windows as a report reads them."""
    return Run.read(digits_run)


@pytest.fixture
def last(run: Run) -> Snapshot:
    """The last of the four windows."""
    snapshot = run.snapshot(4)
    assert snapshot is not None
    return snapshot


@pytest.fixture
def find_class() -> Callable[[str, str], list[ET.Element]]:
    """Finds the elements of an SVG image that have a class."""

    def find(svg: str, name: str) -> list[ET.Element]:
        return [e for e in ET.fromstring(svg).iter() if name in e.get("class", "").split()]

    return find


@pytest.fixture(scope="session")
def words() -> Rename:
    """Class names that would break a careless page."""
    return lambda digit: f'<b>{digit}</b> & "co"'
