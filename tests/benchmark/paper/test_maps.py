from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from cilf.benchmark.paper.items import select_items
from cilf.benchmark.paper.make import write_items
from cilf.benchmark.paper.setup import Setup
from cilf.evaluate.records import Snapshot


def drawn(seed: int, n: int) -> Snapshot:
    blank = np.zeros(n)
    return Snapshot(
        ids=blank.astype(str), map=np.random.default_rng(seed).normal(size=(n, 2)),
        truth=blank.astype(int), novel=blank.astype(bool), label=blank.astype(int),
        cluster=blank.astype(int), novelty=blank,
        thumbnails=np.zeros((n, 0, 0), dtype=np.uint8), matched=np.empty(0, dtype=str),
        sizes=np.empty(0, dtype=np.int64), texts=np.zeros(n, dtype=str),
    )  # fmt: skip


def test_maps_are_of_one_stream_and_of_800_instances_of_a_class_at_most(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    own = ("dnn-base", "one-svm", "senc-mas")
    setup = Setup("smoke", data=(str(few_digits),), seeds=(0, 1), own=own)
    for learner, seeds in {"dnn-base": (0, 1), "one-svm": (1,), "senc-mas": (1,)}.items():
        for seed in seeds:
            folder = keep_run(setup, learner, seed)
            folder.write_snapshot(1, drawn(seed, 900))
            for window in range(2, 1 + len(folder.read_records())):
                (folder.path / "windows" / f"{window:03d}.npz").unlink()
    (written,) = write_items(select_items(["figure5"]), setup, tmp_path)
    assert written.files
    rows = list(csv.DictReader((tmp_path / "figure5.csv").read_text().splitlines()))
    assert Counter(row["learner"] for row in rows) == dict.fromkeys(("raw", *own), 800)
    of_seed_1 = {str(float(x)) for x in drawn(1, 900).map[:, 0]}
    assert {row["x"] for row in rows if row["learner"] == "dnn-base"} <= of_seed_1
