"""Tables and plots of the cells of ``count.py``: count.md, reliability.svg and small.svg.

python benchmarks/count_report.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results" / "count"
Window = dict[str, Any]
Test = Callable[[Window], bool]
BINS = (0.0, 0.3, 0.5, 0.7, 0.9, 1.0)


def load_cells(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def share(windows: Iterable[Window], test: Test) -> str:
    """The share of windows that pass, with its standard error."""
    passed = [test(w) for w in windows]
    if not passed:
        return "-"
    p = float(np.mean(passed))
    return f"{p:.2f} ± {np.sqrt(p * (1 - p) / len(passed)):.2f}"


def mean(windows: Iterable[Window], name: str) -> str:
    values = [w[name] for w in windows if w.get(name) is not None]
    return f"{np.mean(values):.3f}" if values else "-"


def is_quiet(w: Window) -> bool:
    return bool(w["found"] == 0)


def is_exact(w: Window) -> bool:
    return bool(w["found"] == w["true"])


def is_within_one(w: Window) -> bool:
    return abs(w["found"] - w["true"]) <= 1


def is_found(w: Window) -> bool:
    return bool(w["found"] and w["recall"] > 0.5)


def write_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def tabulate_known(cells: dict[str, list[Window]]) -> str:
    kinds = ["one", "two", "tenfold", "hundredfold", "all"]
    header = ["data", "windows", "quiet", *kinds, "instances called novel"]
    rows = []
    for name, windows in cells.items():
        known = [w for w in windows if w["kind"].startswith("known")]
        each = [share([w for w in known if w["kind"] == f"known, {k}"], is_quiet) for k in kinds]
        called = sum(w["called_novel"] * w["n"] for w in known) / sum(w["n"] for w in known)
        rows.append([name, str(len(known)), share(known, is_quiet), *each, f"{called:.3f}"])
    return write_table(header, rows)


def tabulate_counts(cells: dict[str, list[Window]]) -> str:
    header = ["data", "sizes", "windows", "exact", "within one", "none where there is none",
              "NA", "NA, K given", "H", "H, K given", "AUROC", "AUROC of p"]  # fmt: skip
    rows = []
    for name, windows in cells.items():
        for kind in ("equal", "tenfold"):
            of_kind = [w for w in windows if w["kind"] == kind]
            none = [w for w in of_kind if w["true"] == 0]
            names = ("na", "given_na", "h", "given_h", "auroc", "auroc_p")
            rows.append([
                name, kind, str(len(of_kind)), share(of_kind, is_exact),
                share(of_kind, is_within_one), share(none, is_quiet),
                *(mean(of_kind, n) for n in names),
            ])  # fmt: skip
    return write_table(header, rows)


def tabulate_many(cells: dict[str, list[Window]]) -> str:
    header = ["data", "windows", "median relative error", "median found / true", "NA",
              "NA, K given"]  # fmt: skip
    rows = []
    for name, windows in cells.items():
        many = [w for w in windows if w["kind"] == "many"]
        if not many:
            continue
        errors = [abs(w["found"] - w["true"]) / w["true"] for w in many]
        ratios = [w["found"] / w["true"] for w in many]
        rows.append([name, str(len(many)), f"{np.median(errors):.2f}", f"{np.median(ratios):.2f}",
                     mean(many, "na"), mean(many, "given_na")])  # fmt: skip
    return write_table(header, rows)


def tabulate_small(cells: dict[str, list[Window]]) -> str:
    columns = [(beside, n) for beside in (100, 1000) for n in (12, 20, 40)]
    header = ["data", *(f"{n} beside {beside}" for beside, n in columns)]
    rows = []
    for name, windows in cells.items():
        rows.append([name, *(
            share([w for w in windows if w["kind"] == f"beside {beside}" and w["size"] == n],
                  is_found)
            for beside, n in columns
        )])  # fmt: skip
    return write_table(header, rows)


def plot_reliability(cells: dict[str, list[Window]], path: Path) -> None:
    """How often the count is right where it is said to be, and p-values of known instances."""
    windows = [w for each in cells.values() for w in each]
    confidence = np.array([w["confidence"] for w in windows])
    right = np.array([is_exact(w) for w in windows])
    figure = Figure(figsize=(9, 4))
    left, middle = figure.subplots(1, 2)
    for axes, title in ((left, "count_probability"), (middle, "novelty_p of known instances")):
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axes.set_title(title)
    points = [(confidence[m].mean(), right[m].mean(), m.sum()) for m in _bins(confidence)]
    left.scatter(*zip(*[p[:2] for p in points], strict=True),
                 s=[20 + p[2] / 3 for p in points])  # fmt: skip
    left.set(xlabel="probability of the number found", ylabel="share of windows where it is right")
    edges = np.linspace(0, 1, 21)[1:]
    for name, each in cells.items():
        counts = np.sum([w["known_p"] for w in each], axis=0)
        middle.plot(edges, np.cumsum(counts) / counts.sum(), label=name, linewidth=1.2)
    middle.set(xlabel="p", ylabel="share of known instances at or below p")
    middle.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _bins(confidence: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    masks = [(confidence > low) & (confidence <= high) for low, high in pairwise(BINS)]
    return [mask for mask in masks if mask.any()]


def tabulate_reliability(cells: dict[str, list[Window]]) -> str:
    windows = [w for each in cells.values() for w in each]
    confidence = np.array([w["confidence"] for w in windows])
    right = np.array([is_exact(w) for w in windows])
    rows = [
        [f"{confidence[m].mean():.2f}", f"{right[m].mean():.2f}", str(int(m.sum()))]
        for m in _bins(confidence)
    ]
    return write_table(["said", "right", "windows"], rows)


def tabulate_p(cells: dict[str, list[Window]]) -> str:
    rows = []
    for name, windows in cells.items():
        counts = np.sum([w["known_p"] for w in windows], axis=0)
        below = np.cumsum(counts) / counts.sum()
        rows.append([name, *(f"{below[i]:.3f}" for i in (0, 1, 3, 9))])
    return write_table(["data", "p ≤ 0.05", "p ≤ 0.1", "p ≤ 0.2", "p ≤ 0.5"], rows)


def plot_small(cells: dict[str, list[Window]], path: Path) -> None:
    """The share of small novel classes that is found, by their size."""
    figure = Figure(figsize=(9, 3.6))
    both = figure.subplots(1, 2, sharey=True)
    for axes, beside in zip(both, (100, 1000), strict=True):
        for name, windows in cells.items():
            found = [
                np.mean([is_found(w) for w in windows
                         if w["kind"] == f"beside {beside}" and w["size"] == n])
                for n in (12, 20, 40)
            ]  # fmt: skip
            axes.plot((12, 20, 40), found, marker="o", markersize=3, label=name)
        axes.set(title=f"beside {beside} of one known class", xlabel="instances of the novel class")
    both[0].set_ylabel("share of classes found")
    both[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=Path, default=RESULTS)
    folder = parser.parse_args().cells
    by_ablation: dict[str, dict[str, list[Window]]] = {}
    for cell in load_cells(folder):
        windows = by_ablation.setdefault(cell["ablation"], {})
        windows.setdefault(cell["data"], []).extend(cell["windows"])
    cells = by_ablation.pop("none")
    parts = ["# Known classes in any mixture, and the number of novel classes\n",
             "Shares have their standard errors. `count.py` made the cells beside this file.\n",
             "## Windows of known classes alone\n", tabulate_known(cells),
             "## Windows with up to five novel classes\n", tabulate_counts(cells),
             "## Windows with 10 to 20 novel classes of 40 instances each\n", tabulate_many(cells),
             "## One small novel class beside one known class: share found\n",
             tabulate_small(cells), "## Probability of the number found\n",
             tabulate_reliability(cells), "## p-values of known instances\n",
             tabulate_p(cells)]  # fmt: skip
    for ablation, ablated in by_ablation.items():
        parts += [f"## Without {ablation}\n", tabulate_known(ablated), tabulate_counts(ablated),
                  tabulate_small(ablated)]  # fmt: skip
    (folder / "count.md").write_text("\n".join(parts), encoding="utf-8")
    plot_reliability(cells, folder / "reliability.svg")
    plot_small(cells, folder / "small.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
