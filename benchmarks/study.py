"""Every doubtful choice of CILF, one change at a time, on whole streams.

    .venv/bin/python benchmarks/study.py screen
    .venv/bin/python benchmarks/study.py confirm --seeds 1 2 3 --variants defaults rotation

``screen`` changes one parameter at a time, on one seed and the first two windows, with the number
of novel classes given so that a miscount does not drown the effect; ``confirm`` runs whole
streams of both scenarios, where the number is found. Initial fits that a change does not touch are
made once. Finished runs are kept under ``runs/study`` and not run again; tables are written
to ``benchmarks/results/study_{screen,confirm}.{md,json}``.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from cilf import CILF, load
from cilf.benchmark import RunConfig
from cilf.benchmark.presets import SCENARIOS
from cilf.benchmark.provenance import provenance
from cilf.core.cache import cached_folder
from cilf.core.types import Array
from cilf.data import Dataset, load_dataset
from cilf.evaluate import run_stream, summarize
from cilf.learners import Learner, make
from cilf.report import Table

RESULTS = Path(__file__).parent / "results"
RUNS = Path("runs/study")
SCORES = {
    "na": "NA", "auroc": "AUROC", "k_exact": "K exact", "k_within_one": "K within 1",
    "f_new": "known called novel", "holdout_first": "first classes", "holdout_all": "all classes",
    "seconds": "seconds",
}  # fmt: skip
AFTER_FIT = {  # parameters that an initial fit does not depend on
    "k_max", "count", "surplus", "doubt", "least_share", "leniency", "cluster_on", "space_size",
    "whitening", "cluster_beta", "weighted", "gamma", "false_novel", "strict", "order",
    "pace_start", "pace_growth", "pace_every", "detect_epochs", "detect_steps",
    "detect_learning_rate", "replay", "lambda2", "update_epochs",
    "update_learning_rate", "distill", "distill_on", "temperature",
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A data set as the study uses it."""

    name: str
    scale: str = "cpu"
    n_classes: int | None = None  # as many of its classes, chosen by the seed
    stream: tuple[tuple[str, int], ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()

    def load(self) -> Dataset:
        dataset = load_dataset(self.name)
        return dataclasses.replace(dataset, n_drawn=self.n_classes or dataset.n_drawn)


SOURCES = {
    "digits": Source("digits", scale="smoke"),
    "mnist": Source("mnist"),
    "cifar10": Source("cifar10"),
    "cifar20": Source(
        "cifar100",
        n_classes=20,
        stream=(
            ("n_initial", 10),
            ("max_novel", 3),
            ("initial_size", 200),
            ("window_size", 50),
            ("n_windows", 5),
        ),
        parameters=(("memory_size", 1000),),
    ),
    "cifar10-pretrained": Source("cifar10", parameters=(("backbone", "efficientnet-lite0"),)),
    "cifar50": Source("cifar50"),
    "cifar100": Source("cifar100"),
    "cifar50-pretrained": Source("cifar50", parameters=(("backbone", "efficientnet-lite0"),)),
    "cifar100-pretrained": Source("cifar100", parameters=(("backbone", "efficientnet-lite0"),)),
}

TUNED = {"detect_epochs": 5}
VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    # Algorithm 1
    "triplets average": {"triplets": "average"},
    "triplets average of all": {"triplets": "average", "negatives": None},
    "triplets of all classes": {"negatives": None},
    "triplets x 0.1": {"lambda1": 0.1},
    "triplets hardest": {"triplets": "hardest"},
    "triplets none": {"lambda1": 0.0},
    "triplets not squared": {"squared": False, "margin": 2.0},
    "margin 1": {"margin": 1.0},
    "margin 20": {"margin": 20.0},
    "alpha 0.1": {"alpha": 0.1},
    "alpha 1": {"alpha": 1.0},
    "length 5": {"length": 5.0},
    "length 10": {"length": 10.0},
    "embedding 32": {"embedding_size": 32},
    "embedding 128": {"embedding_size": 128},
    "beta 0": {"beta": 0.0},
    "prototypes annealed": {"exact_prototypes": False},
    "rotation": {"rotation": 1.0},
    "augmentation none": {"augmentation": None},
    "augmentation shift-flip": {"augmentation": "shift-flip"},
    # Algorithm 2
    "space embedding": {"cluster_on": "embedding"},
    "space features": {"cluster_on": "features"},
    "space raw embedding": {"space_size": None},
    "whitening 0": {"whitening": 0.0},
    "whitening 0.8": {"whitening": 0.8},
    "space 32": {"space_size": 32},
    "weighted, gamma 0.5": {"weighted": True, "gamma": 0.5},
    "weighted, gamma 0.8": {"weighted": True, "gamma": 0.8},
    "known centres move": {"cluster_beta": 0.8},
    "tuning": TUNED,
    "tuning, order of the weights": TUNED | {"order": "weights"},
    "tuning, no order": TUNED | {"order": "none"},
    "tuning, pace of the paper": TUNED | {"pace_start": 0.2, "pace_growth": 3.0, "pace_every": 10},
    "tuning, rate 0.001": TUNED | {"detect_learning_rate": 0.001},
    "tuning, rate 0.01": TUNED | {"detect_learning_rate": 0.01},
    "tuning, 4 x as long": {"detect_epochs": 20},
    "tuning, no replay": TUNED | {"replay": 0},
    "tuning, no R": TUNED | {"lambda2": 0.0},
    # Algorithm 3
    "update, no R": {"lambda2": 0.0},
    "update 8 epochs": {"update_epochs": 8},
    "update 30 epochs": {"update_epochs": 30},
    "update rate 0.003": {"update_learning_rate": 0.003},
    "update rate 0.02": {"update_learning_rate": 0.02},
    "no distillation": {"distill": 0.0},
    "distillation x 3": {"distill": 3.0},
    "temperature 2": {"temperature": 2.0},
    "temperature 4": {"temperature": 4.0},
    "distill embeddings": {"distill_on": "embeddings"},
    "herding": {"memory_choice": "herding"},
    "memory half": {"memory_share": 0.5},
    "memory double": {"memory_share": 2.0},
    "K given": {"given": True},
    "paper": {"paper": True},
    "joint": {"joint": True},
}


class FittedOnce(CILF):
    """CILF whose initial fit is read from the cache if the same one was made before."""

    def fit(self, X: Any, y: Any) -> FittedOnce:
        asked = {k: v for k, v in self.get_params().items() if k not in AFTER_FIT}
        key = {"parameters": asked, "X": _hash(X), "y": _hash(y)}

        def make(folder: Path) -> None:
            CILF(**self.get_params()).fit(X, y).save(folder)

        fitted = load(cached_folder("study-fits", key, make))
        vars(self).update({k: v for k, v in vars(fitted).items() if k.startswith("_")})
        return self


def learner_of(source: Source, variant: str, seed: int, preset: dict[str, Any]) -> Learner:
    changes = {name: value for name, value in VARIANTS[variant].items() if name != "given"}
    if changes.pop("joint", False):
        return make("joint", **(preset | dict(source.parameters) | {"seed": seed}))
    share = changes.pop("memory_share", 1.0)
    parameters = preset | dict(source.parameters) | {"seed": seed}
    parameters["memory_size"] = int(share * parameters["memory_size"])
    if changes.pop("paper", False):
        budget = {k: parameters[k] for k in ("memory_size", "seed")} | {"backbone": "convnet"}
        return FittedOnce(**CILF.paper(**budget).get_params())
    return FittedOnce(**(parameters | changes))


def run(
    source_name: str, scenario: str, seed: int, variant: str, screening: bool
) -> dict[str, Any]:
    """The summary of one run; one that is finished is read from its file."""
    kind = "screen" if screening else "confirm"
    kept = RUNS / kind / f"{source_name}-{scenario}-{seed}-{variant.replace(' ', '_')}.json"
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    print(kept.stem, file=sys.stderr, flush=True)
    source = SOURCES[source_name]
    config = RunConfig.of(
        learner="cilf", data=source.name, scenario=scenario, seed=seed, scale=source.scale
    )
    arguments = config.stream_arguments()
    arguments |= {name: value for name, value in source.stream if name in arguments}
    if screening:
        arguments["n_windows"] = 2
    stream = SCENARIOS[scenario](source.load(), seed=seed, **arguments)
    budgets = {k: v for k, v in config.preset.learner.items() if k in CILF.parameter_names()}
    learner = learner_of(source, variant, seed, budgets)
    started = time.perf_counter()
    given = screening or "given" in VARIANTS[variant]
    records = list(run_stream(learner, stream, n_novel="true" if given else None))
    seconds = {"seconds": time.perf_counter() - started}
    summary = {name: value for name, value in summarize(records).items() if name in SCORES}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(summary | seconds))
    return summary | seconds


def _hash(values: Any) -> str:
    array: Array = np.ascontiguousarray(values)
    return hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()


def spread(values: list[float]) -> tuple[float, float] | None:
    """Mean and deviation of what is defined."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return None
    return mean(defined), stdev(defined) if len(defined) > 1 else 0.0


def rows_of(arguments: argparse.Namespace, screening: bool) -> list[dict[str, Any]]:
    """One row for each variant, data set and scenario: mean and deviation over the seeds."""
    rows = []
    for variant in arguments.variants:
        for source in arguments.data:
            for scenario in arguments.scenarios:
                summaries = [
                    run(source, scenario, seed, variant, screening) for seed in arguments.seeds
                ]
                scores = {
                    name: spread([summary.get(name, math.nan) for summary in summaries])
                    for name in SCORES
                }
                named = {"variant": variant, "data": source, "scenario": scenario}
                rows.append(named | {"changes": VARIANTS[variant], "scores": scores})
    return rows


def text(score: tuple[float, float] | None, several: bool) -> str:
    if score is None:
        return ""
    return f"{score[0]:.3f} ± {score[1]:.3f}" if several else f"{score[0]:.3f}"


def screen_table(rows: list[dict[str, Any]], data: list[str]) -> Table:
    """Variants down, data sets across: NA, and accuracy over all classes at the end."""
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    found = {(row["variant"], row["data"]): row["scores"] for row in rows}
    shown = [("na", "NA"), ("auroc", "AUROC"), ("holdout_all", "accuracy")]
    header = ["change", *(f"{source} {label}" for source in data for _, label in shown)]
    body = [
        [
            variant,
            *(text(found[variant, source][name], False) for source in data for name, _ in shown),
        ]
        for variant in variants
    ]
    return Table("One change at a time, K given", tuple(header), tuple(map(tuple, body)))


def confirm_table(rows: list[dict[str, Any]]) -> Table:
    header = ["variant", "data", "scenario", *SCORES.values()]
    body = [
        [
            row["variant"],
            row["data"],
            row["scenario"],
            *(text(row["scores"][n], True) for n in SCORES),
        ]
        for row in rows
    ]
    return Table("Whole streams", tuple(header), tuple(map(tuple, body)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("phase", choices=["screen", "confirm"])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), metavar="NAME")
    parser.add_argument("--data", nargs="+", choices=list(SOURCES), metavar="NAME")
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS))
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--name", help="of the files that are written, if not that of the phase")
    arguments = parser.parse_args()
    screening = arguments.phase == "screen"
    changed = [name for name in VARIANTS if name not in ("joint", "K given")]
    arguments.variants = arguments.variants or (changed if screening else ["defaults"])
    arguments.data = arguments.data or [
        "digits",
        "mnist",
        "cifar10",
        *([] if screening else ["cifar20"]),
    ]
    arguments.scenarios = arguments.scenarios or (["multiple"] if screening else list(SCENARIOS))
    arguments.seeds = arguments.seeds or ([0] if screening else [1, 2, 3])
    return arguments


def main() -> None:
    arguments = parsed()
    torch.set_num_threads(1)
    screening = arguments.phase == "screen"
    rows = rows_of(arguments, screening)
    table = screen_table(rows, arguments.data) if screening else confirm_table(rows)
    name = arguments.name or f"study_{arguments.phase}"
    record = {"phase": arguments.phase, "seeds": arguments.seeds, "rows": rows} | provenance()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(table.to_markdown())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
