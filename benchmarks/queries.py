"""How many labels it takes: shares, strategies, propagated answers, and nobody asked at all.

    .venv/bin/python benchmarks/queries.py --data digits --seeds 0 1 2

Runs one learner on both scenarios: with every share of ``--shares``, with every strategy at the
budget of ``--budget`` labels for each cluster, with and without propagation, and self-taught.
Each run is kept under ``--runs`` (finished ones are not run again); the results go to
``benchmarks/results/queries_DATA.{json,md,svg}``: a table, and a picture of what a share of the
labels buys.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import stdev
from typing import Any

import torch

from cilf.benchmark import SCENARIOS, RunConfig, run_cell
from cilf.benchmark.provenance import provenance
from cilf.evaluate import summarize
from cilf.evaluate.summary import mean
from cilf.query.strategies import STRATEGIES
from cilf.report import Table
from cilf.report.tables import MISSING

RESULTS = Path(__file__).parent / "results"
SHARES = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
PROPAGATED = ("random", "representative")  # strategies whose answers speak for their cluster
COLUMNS = {
    "na": "NA", "holdout_all": "all classes", "holdout_new": "new classes",
    "k_exact": "K exact", "n_queried": "labels", "n_propagated": "made up",
    "propagated_right": "of these right",
}  # fmt: skip
CURVES = {"na": "NA, mean over the windows", "holdout_all": "Hold-out accuracy at the end"}
COLOURS = {"multiple": "#0072b2", "single": "#d55e00"}


def ways(shares: list[float], budget: int, purity: float) -> Iterator[dict[str, Any]]:
    """What is asked, as arguments of a run."""
    yield from ({"query": share} for share in shares)
    for strategy in STRATEGIES:
        yield {"query": budget, "strategy": strategy}
    for strategy in PROPAGATED:
        yield {"query": budget, "strategy": strategy, "propagate": purity}
    yield {"query": "self"}


def summary_of(way: dict[str, Any], scenario: str, seed: int, options: argparse.Namespace) -> Any:
    """The numbers of one run, which is resumed if it is there already."""
    named = "-".join(f"{name}_{value}" for name, value in way.items())
    out = options.runs / f"{options.learner}-{options.data}-{scenario}-{seed}-{named}"
    config = RunConfig.of(
        learner=options.learner, data=options.data, scale=options.scale, scenario=scenario,
        seed=seed, **way,
    )  # fmt: skip
    print(f"{scenario} seed {seed} {way}", file=sys.stderr)
    return summarize(list(run_cell(config, out, resume=True)))


def row_of(way: dict[str, Any], scenario: str, options: argparse.Namespace) -> dict[str, Any]:
    runs = [summary_of(way, scenario, seed, options) for seed in options.seeds]
    return {"scenario": scenario, **way} | {
        name: _mean_and_deviation([run[name] for run in runs]) for name in COLUMNS
    }


def _mean_and_deviation(values: list[float]) -> tuple[float | None, float]:
    """None where no run defines the number: JSON has no NaN."""
    defined = [value for value in values if not math.isnan(value)]
    return (mean(defined) if defined else None, stdev(defined) if len(defined) > 1 else 0.0)


def table_of(rows: list[dict[str, Any]], options: argparse.Namespace) -> Table:
    lines = [
        (row["scenario"], *_asked(row), *(_cell(name, *row[name]) for name in COLUMNS))
        for row in rows
    ]
    title = (
        f"{options.learner} on {options.data} ({options.scale or 'usual scale'}), seeds "
        f"{options.seeds} (mean ± deviation over seeds)"
    )
    columns = ("scenario", "query", "strategy", "propagate", *COLUMNS.values())
    return Table(title, columns, tuple(lines))


def _asked(row: dict[str, Any]) -> tuple[str, str, str]:
    query = row["query"]
    unit = " a cluster" if isinstance(query, int) else ""
    strategy = MISSING if query == "self" else row.get("strategy", "random")
    return f"{query}{unit}", strategy, str(row.get("propagate", MISSING))


def _cell(name: str, value: float | None, deviation: float) -> str:
    if value is None:
        return MISSING
    return f"{value:.0f}" if name.startswith("n_") else f"{value:.3f} ± {deviation:.3f}"


def draw(rows: list[dict[str, Any]], options: argparse.Namespace, path: Path) -> None:
    """The share of the labels against NA and accuracy, a curve for each scenario."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "cilf"  # the same picture is the same file
    figure, panels = pyplot.subplots(1, len(CURVES), figsize=(9.5, 4.2), sharey=True)
    for axes, (name, title) in zip(panels, CURVES.items(), strict=True):
        for scenario, colour in COLOURS.items():
            _draw_curve(axes, [row for row in rows if row["scenario"] == scenario], name, colour)
        _label(axes, title)
    panels[0].set_ylim(top=1.0)  # once all is drawn: it ends the search for the other limit
    figure.suptitle(f"{options.learner} on {options.data}, {len(options.seeds)} seeds")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def _draw_curve(axes: Any, rows: list[dict[str, Any]], name: str, colour: str) -> None:
    shares = [row for row in rows if isinstance(row["query"], float)]
    x = [row["query"] for row in shares]
    means, deviations = zip(*(row[name] for row in shares), strict=True)
    low, high = ([m + sign * d for m, d in zip(means, deviations, strict=True)] for sign in (-1, 1))
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, means, color=colour, marker="o", label=rows[0]["scenario"])
    own = next(row[name][0] for row in rows if row["query"] == "self")
    axes.axhline(own, color=colour, linestyle=":", label=f"{rows[0]['scenario']}, nobody asked")


def _label(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_xticks(SHARES, [f"{share:g}" for share in SHARES])
    axes.minorticks_off()
    axes.set_xlabel("share of the instances believed new that is asked about")
    axes.grid(alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits")
    parser.add_argument("--scale", default=None, help="default: what suits the data")
    parser.add_argument("--learner", default="cilf")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--budget", type=int, default=3, help="labels for each cluster")
    parser.add_argument("--purity", type=float, default=0.8)
    parser.add_argument("--runs", type=Path, default=Path("runs/queries"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        row_of(way, scenario, options)
        for way in ways(options.shares, options.budget, options.purity)
        for scenario in SCENARIOS
    ]
    write(sorted(rows, key=lambda row: row["scenario"]), options)


def write(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"queries_{options.data}"
    table = table_of(rows, options)
    path.with_suffix(".md").write_text(table.to_markdown(), encoding="utf-8")
    draw(rows, options, path.with_suffix(".svg"))
    said = {name: value for name, value in vars(options).items() if name not in ("runs", "out")}
    record = {"command": _command(options), **said, "rows": rows} | provenance()
    path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table.to_markdown())


def _command(options: argparse.Namespace) -> str:
    scale = f" --scale {options.scale}" if options.scale else ""
    seeds = " ".join(map(str, options.seeds))
    return f"benchmarks/queries.py --data {options.data}{scale} --seeds {seeds}"


if __name__ == "__main__":
    main()
