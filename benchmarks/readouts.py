"""Accuracy of every readout, after a fit and after two updates, on fresh instances.

Each cell is a data set and a seed. The learner is fitted on the known classes of ``count.py`` and
updated twice with two novel classes, all labels given. ``auto`` adds the scores of all three.

    CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/readouts.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cilf import CILF
from cilf.learners.cilf.readout import READOUTS
from cilf.nn.network import as_tensor

sys.path.insert(0, str(Path(__file__).parent))
from count import CASES, Case, Pool

RESULTS = Path(__file__).parent / "results"
MORE = {"cifar100": Case("cifar100", "convnet", 30, 100, 1500, 100, 30)}
N_FRESH = 100  # instances of each class that are asked for
N_ARRIVING = 2  # classes of an update
STAGES = ("fit", "two updates")


def run_cell(name: str, case: Case, seed: int) -> dict[str, Any]:
    """The accuracies of one learner, by stage and readout."""
    pool = Pool(case, seed)
    learner = CILF(seed=seed, backbone=case.backbone, memory_size=case.memory)
    learner.fit(pool.X[pool.initial], pool.y[pool.initial])
    classes = list(pool.known)
    found = {STAGES[0]: measure(learner, pool, classes)}
    for first in (0, N_ARRIVING):
        arriving = pool.novel[first : first + N_ARRIVING]
        rows = np.concatenate([pool.rows[label][: case.initial] for label in arriving])
        learner.update(pool.X[rows], pool.y[rows])
        for label in arriving:
            pool.rows[label] = pool.rows[label][case.initial :]
        classes += arriving
    found[STAGES[1]] = measure(learner, pool, classes)
    return {"data": name, "seed": seed, "accuracy": found}


def measure(learner: CILF, pool: Pool, classes: list[Any]) -> dict[str, Any]:
    rows = np.concatenate([pool.rows[label][:N_FRESH] for label in classes])
    features = learner._extract_features(learner._check_instances(pool.X[rows]))
    views = learner._embedding().views(as_tensor(features, learner._network.device))
    accuracy = {
        name: float(np.mean(_predict(learner, name, views) == pool.y[rows])) for name in READOUTS
    }
    auto = learner.classes_[learner._readouts.label(views)]
    return accuracy | {"auto": float(np.mean(auto == pool.y[rows]))}


def _predict(learner: CILF, name: str, views: list[Any]) -> Any:
    scores = learner._readouts.known[name].score(views)
    return learner.classes_[scores.argmax(1).cpu().numpy()]


def write_table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """A row for each data set and stage: mean over the seeds."""
    yield "| data | after | " + " | ".join(f"`{name}`" for name in (*READOUTS, "auto")) + " |"
    yield "|---|---|" + "---|" * (len(READOUTS) + 1)
    for data in dict.fromkeys(cell["data"] for cell in cells):
        for stage in STAGES:
            own = [cell["accuracy"][stage] for cell in cells if cell["data"] == data]
            means = [np.mean([each[name] for each in own]) for name in READOUTS]
            means.append(np.mean([read_auto(each) for each in own]))
            best = max(means)
            shown = [f"**{m:.3f}**" if m == best else f"{m:.3f}" for m in means]
            yield f"| {data} | {stage} | " + " | ".join(shown) + " |"


def read_auto(accuracy: dict[str, Any]) -> float:
    """The accuracy of ``auto``. Records from when it chose one readout name that one."""
    return float(accuracy["auto"] if "auto" in accuracy else accuracy[accuracy["chosen"]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases = CASES | MORE
    parser.add_argument("--data", nargs="+", choices=list(cases), default=list(cases))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1006, 1007])
    parser.add_argument("--out", type=Path, default=RESULTS / "readouts.json")
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    if options.out.exists():  # what is there is kept
        cells = json.loads(options.out.read_text())
    done = {(cell["data"], cell["seed"]) for cell in cells}
    for name in options.data:
        for seed in options.seeds:
            if (name, seed) not in done:
                cells.append(run_cell(name, cases[name], seed))
                options.out.write_text(json.dumps(cells, indent=1) + "\n")
                print(cells[-1], flush=True)
    cells.sort(key=lambda cell: (cell["data"], cell["seed"]))
    options.out.write_text(json.dumps(cells, indent=1) + "\n")
    options.out.with_suffix(".md").write_text("\n".join(write_table(cells)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
