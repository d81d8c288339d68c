"""The whole loop on embedded digits: every learner, both scenarios, several seeds, defaults.

    .venv/bin/python benchmarks/digits.py --seeds 0 1 2

Each run is kept under ``runs/digits`` (finished ones are not run again), the table is written
to ``benchmarks/results/digits.{md,json}`` and, in short, to the README. Forgetting is measured
against ``joint``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean, stdev

import torch
from marked import replace_marked

from cilf.benchmark import RunConfig, run_cell
from cilf.benchmark.provenance import provenance
from cilf.core import WindowRecord
from cilf.evaluate import summarize
from cilf.report import Table

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
COLUMNS = {
    "na": "NA", "macro_f": "Macro-F", "micro_f": "Micro-F", "auroc": "AUROC",
    "k_exact": "K exact", "k_within_one": "K within 1", "holdout_first": "first classes",
    "holdout_all": "all classes", "forgetting": "forgetting", "seconds": "seconds",
}  # fmt: skip


def records_of(
    learner: str, scenario: str, seed: int, stream: dict[str, int]
) -> list[WindowRecord]:
    quiet = "".join(f"-{name}{value}" for name, value in stream.items())
    out = Path("runs/digits") / f"{learner}-{scenario}{quiet}-{seed}"
    config = RunConfig.of(
        learner=learner, data="digits", scenario=scenario, seed=seed, stream=stream
    )
    print(f"{learner} {scenario} seed {seed} {stream or ''}", file=sys.stderr)
    return list(run_cell(config, out, resume=True))


def row_of(summaries: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    cells = {}
    for name in COLUMNS:
        values = [summary[name] for summary in summaries]
        cells[name] = (mean(values), stdev(values) if len(values) > 1 else 0.0)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--learners", nargs="+", default=["cilf", "iforest", "joint"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    for scenario, stream in (("multiple", {}), ("multiple", {"n_quiet": 1}), ("single", {})):
        upper = {seed: records_of("joint", scenario, seed, stream) for seed in arguments.seeds}
        for learner in arguments.learners:
            summaries = []
            for seed in arguments.seeds:
                records = records_of(learner, scenario, seed, stream)
                summary = summarize(records, joint=upper[seed])
                seconds = summary["seconds_detect"] + summary["seconds_update"]
                summaries.append(summary | {"seconds": seconds})
            rows.append({"scenario": scenario, **stream, "learner": learner} | row_of(summaries))
    write(rows, arguments.seeds)


def write(rows: list[dict[str, object]], seeds: list[int]) -> None:
    lines = []
    for row in rows:
        title = f"{row['scenario']}{', one quiet window' if row.get('n_quiet') else ''}"
        cells = [f"{row[name][0]:.3f} ± {row[name][1]:.3f}" for name in COLUMNS]  # type: ignore[index]
        lines.append([title, str(row["learner"]), *cells])
    title = f"digits, seeds {seeds}, default settings (mean ± deviation over seeds)"
    table = Table(title, ["scenario", "learner", *COLUMNS.values()], lines)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "digits.md").write_text(table.to_markdown(), encoding="utf-8")
    command = f"benchmarks/digits.py --seeds {' '.join(map(str, seeds))}"
    record = {"command": command, "seeds": seeds, "rows": rows} | provenance()
    (RESULTS / "digits.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table.to_markdown())
    write_readme(rows, seeds, command)


def write_readme(rows: list[dict[str, object]], seeds: list[int], command: str) -> None:
    """Replace what stands between the two marks in the README."""
    shown = ("na", "auroc", "k_exact", "k_within_one", "holdout_first", "holdout_all", "forgetting")
    lines = []
    for row in rows:
        quiet = ", one quiet window" if row.get("n_quiet") else ""
        cells = [f"{row[name][0]:.3f}" for name in shown]  # type: ignore[index]
        lines.append([f"{row['scenario']}{quiet}", str(row["learner"]), *cells])
    table = Table("", ["stream", "learner", *(COLUMNS[name] for name in shown)], lines)
    body = table.to_markdown().split("\n\n", 1)[1]  # without the title
    replace_marked(README, "digits", f"{body}\n{len(seeds)} seeds, `{command}`.")


if __name__ == "__main__":
    main()
