"""``cilf run`` as a person types it, on one core, kept with its time and never run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from marked import replace_marked

from cilf.core import WindowRecord
from cilf.evaluate.records import RunFolder

RUNS = Path("runs/commands")
PAGES = Path(__file__).parent.parent / "docs" / "methods"


class Ran(NamedTuple):
    """What a command said."""

    summary: dict[str, Any]  # with "seconds", of the whole command
    records: list[WindowRecord]


def ran(learner: str, data: str, scenario: str, seed: int, *changes: str) -> Ran:
    """Run this cell, or read what it gave before; ``changes`` are those of ``--set``."""
    name = "-".join([learner, data, scenario, *changes, str(seed)])
    out = RUNS / name
    kept = RUNS / f"{name}.json"
    if not kept.exists():
        cell = ["--learner", learner, "--data", data, "--scenario", scenario, "--seed", str(seed)]
        changed = [word for change in changes for word in ("--set", change)]
        command = ["cilf", "run", *cell, *changed, "--out", str(out), "--overwrite"]
        print(" ".join(command), file=sys.stderr)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", *command, "--json"],
            env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            sys.exit(done.stderr)
        summary = json.loads(done.stdout)["summary"]
        kept.write_text(json.dumps(summary | {"seconds": time.perf_counter() - start}))
    return Ran(json.loads(kept.read_text()), RunFolder.open(out).read_records())


def write_page(learner: str, table: str, command: str) -> None:
    """Replace what stands between the two marks in a learner's page, if it has them."""
    replace_marked(PAGES / f"{learner}.md", "measured", f"{table}\n`{command}`")
