"""Where the time of a run goes, by learner, and what shared fits and short maps save.

    python benchmarks/where_time_goes.py                      one small run of each learner
    python benchmarks/where_time_goes.py --compare cilf cpe   and both protocols, before and after

A run has MNIST at scale cpu with fewer images. Its steps are timed by cProfile. "Before" fits each
protocol itself and has the maps of scikit-learn's defaults; "after" is the code as it is. Both are
run in turns in one process, and processor seconds count, so that other work does not matter.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cilf.benchmark import RunConfig, run_cell
from cilf.benchmark.job import one_thread
from cilf.benchmark.provenance import provenance
from cilf.core.files import replace_file
from cilf.evaluate import snapshot
from cilf.learners import LEARNERS
from cilf.query.query_policy import FOUND, GIVEN

OUT = Path(__file__).parent / "results" / "where_time_goes.json"
SIZES = {"initial_size": 200, "window_size": 80, "holdout_size": 50, "n_windows": 2}
SEED = 7
DEFAULT_STEPS, DEFAULT_ANGLE = 1000, 0.5  # of scikit-learn's t-SNE
# The function whose time is that of a step: its file, and its name.
STEPS = {
    "fit": ("checkpoint.py", "_fit_once"),
    "detection": ("run.py", "_detect"),
    "update": ("run.py", "_update"),
    "hold-out": ("run.py", "_holdout_accuracy"),
    "map": ("snapshot.py", "take_snapshot"),
    "checkpoint": ("checkpoint.py", "_save"),
}
TRAINING = ("training.py", "_one_epoch")  # part of fit, detection and update


def make_config(learner: str, protocol: str = FOUND) -> RunConfig:
    budgets = {"scale": "cpu", "stream": SIZES, "seed": SEED, "protocol": protocol}
    return RunConfig.of(learner=learner, data="mnist", scenario="multiple", **budgets)


def profile(learner: str) -> dict[str, Any]:
    """Run a learner under the profiler; return the share of each step."""
    config = make_config(learner)
    protocol = GIVEN if config.make_learner().takes_all_labels else FOUND
    profiler, started = cProfile.Profile(), time.process_time()
    with tempfile.TemporaryDirectory() as out:
        profiler.enable()
        list(run_cell(make_config(learner, protocol), Path(out) / "run"))
        profiler.disable()
    seconds = time.process_time() - started
    stats = pstats.Stats(profiler)
    shares = {name: sum_seconds(stats, place) / stats.total_tt for name, place in STEPS.items()}
    shares["other"] = 1 - sum(shares.values())
    shares["training"] = sum_seconds(stats, TRAINING) / stats.total_tt
    return {"learner": learner, "cpu_seconds": round(seconds, 1)} | {
        name: round(share, 3) for name, share in shares.items()
    }


def sum_seconds(stats: pstats.Stats, place: tuple[str, str]) -> float:
    """Return the seconds inside a function, with those that it calls."""
    file, name = place
    return sum(
        entry[3]
        for (path, _, function), entry in stats.stats.items()
        if Path(path).name == file and function == name
    )


def compare(learner: str) -> dict[str, Any]:
    """Return the processor seconds of both protocols, before and after; records have to agree."""
    seconds, records = {}, {}
    for side, short in (("before", False), ("after", True)):
        started = time.process_time()
        with tempfile.TemporaryDirectory() as out, map_settings(short):
            fits = Path(out) / "fits" if short else None
            records[side] = [
                untimed(record.to_json())
                for protocol in (FOUND, GIVEN)
                for record in run_cell(
                    make_config(learner, protocol), Path(out) / protocol, fits=fits
                )
            ]
        seconds[side] = round(time.process_time() - started, 1)
    same = records["before"] == records["after"]
    ratio = round(seconds["before"] / seconds["after"], 2)
    return {"learner": learner, **seconds, "ratio": ratio, "same_records": same}


def untimed(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if "seconds" not in name}


@contextmanager
def map_settings(short: bool) -> Iterator[None]:
    """Make maps as they are, or with scikit-learn's defaults."""
    kept = snapshot.STEPS, snapshot.ANGLE
    if not short:
        snapshot.STEPS, snapshot.ANGLE = DEFAULT_STEPS, DEFAULT_ANGLE
    try:
        yield
    finally:
        snapshot.STEPS, snapshot.ANGLE = kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learner", nargs="*", default=list(LEARNERS))
    parser.add_argument("--compare", nargs="*", default=[], metavar="LEARNER")
    arguments = parser.parse_args()
    kept: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    rows: dict[str, Any] = kept.get("profiles", {})
    ratios: dict[str, Any] = kept.get("compared", {})
    with one_thread():
        make_config("never").load()  # decoded before anything is timed
        for learner in arguments.learner:
            rows[learner] = profile(learner)
            print(rows[learner], flush=True)
            write(rows, ratios)
        for learner in arguments.compare:
            ratios[learner] = compare(learner)
            print(ratios[learner], flush=True)
            write(rows, ratios)


def write(rows: dict[str, Any], ratios: dict[str, Any]) -> None:
    """Write the record after each learner."""
    about = {"sizes": SIZES, "seed": SEED} | provenance()
    content = {"profiles": rows, "compared": ratios} | about
    replace_file(OUT, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
