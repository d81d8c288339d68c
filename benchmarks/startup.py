"""What the command line costs before it works: help, and mistakes that it refuses.

Each command runs several times in a process of its own. The seconds of the processor are those of
the process and the system, the least of the runs, because another process can only add to them.

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cilf.benchmark.provenance import provenance

RESULTS = Path(__file__).parent / "results"
RUNS = 5
MOST_SECONDS = {"--help": 0.5}  # of the processor
MOST_OF_A_MISTAKE = 1.0
COMMANDS = (
    "--help",
    "fit --help",
    "fit nowhere",
    "fit mnits",
    "fit digits --learner clif",
    "fit table.csv",
    "detect nowhere x",
    "detect model nowhere",
    "update nowhere x",
    "predict nowhere x",
    "model nowhere",
    "rollback nowhere",
    "fit digits --set epohcs=3",
)
NEEDS_TORCH = ("fit digits --set epohcs=3",)  # parameters are those of the learner's class


def measure(command: str, folder: str) -> dict[str, float]:
    """The seconds of the processor, and those that pass."""
    runs = [_run(command, folder) for _ in range(RUNS)]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def _run(command: str, folder: str) -> dict[str, float]:
    before, start = os.times(), os.times().elapsed
    subprocess.run(
        [sys.executable, "-m", "cilf", *command.split()], cwd=folder, capture_output=True,
        check=False,
    )  # fmt: skip
    after = os.times()
    spent = after.children_user + after.children_system
    return {
        "cpu_seconds": spent - before.children_user - before.children_system,
        "seconds": after.elapsed - start,
    }


def target(command: str) -> float | None:
    """The most seconds of the processor that a command may take."""
    if command in NEEDS_TORCH:
        return None
    return MOST_SECONDS.get(command, MOST_OF_A_MISTAKE)


def format_table(results: dict[str, dict[str, float]]) -> str:
    """The results as a Markdown table."""
    lines = ["| command | processor | elapsed | target |", "|---|---|---|---|"]
    for command, cost in results.items():
        most = target(command)
        wanted = "" if most is None else f"{most:.1f} s"
        times = f"{cost['cpu_seconds']:.2f} s | {cost['seconds']:.2f} s"
        lines.append(f"| `cilf {command}` | {times} | {wanted} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.csv").write_text("length,width\n1,2\n")  # without a label
        results = {command: measure(command, folder) for command in COMMANDS}
    table = format_table(results)
    print(table)
    record: dict[str, Any] = {"runs": RUNS, "commands": results, **provenance()}
    RESULTS.joinpath("startup.json").write_text(json.dumps(record, indent=1) + "\n")
    about = (
        "# Start of the command line\n\nThe least of several runs each, with the target of the "
        "processor time. `python benchmarks/startup.py` makes this file. The last command checks "
        "the parameters of a learner, whose class needs torch.\n\n"
    )
    RESULTS.joinpath("startup.md").write_text(about + table)
    late = [c for c, cost in results.items() if cost["cpu_seconds"] > (target(c) or 60.0)]
    print(f"over the target: {', '.join(late) or 'none'}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
