"""From runs to one self-contained page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cilf.core import WindowRecord
from cilf.core.extras import optional
from cilf.core.files import replace_file
from cilf.core.parameters import flatten, to_dotted
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.records import find_runs
from cilf.evaluate.summary import summarize
from cilf.query.query_policy import GIVEN
from cilf.report import charts, exemplars, heatmaps, scatter
from cilf.report.clusters import find_correct, to_text
from cilf.report.description import describe_data, describe_run, format_percent, list_data_facts
from cilf.report.paper_items import INDEX, read_paper_items
from cilf.report.run import Run
from cilf.report.run_tables import (
    make_run_table,
    make_window_footer,
    make_window_table,
    sort_runs,
)
from cilf.report.tables import Table, format_cell, is_missing

SHAREABLE = ("changes", "data", "scenario", "scale", "protocol")
FACTS = ("scale", "protocol", "query", "strategy", "propagate", "n_novel", "started", "commit")
TILES = (
    "plan_h", "plan_aks", "plan_aus", "plan_na", "plan_auroc", "plan_k_exact", "holdout_first",
    "holdout_all",
)  # fmt: skip
USUAL = (("strategy", "random"), ("protocol", "found"))  # options that a command leaves out
MAX_RUNS_WITH_IMAGES = 8  # on one page


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` and the tables of the run, or of the runs, in this folder.

    A single run gets ``windows.{md,csv,tex}``, several get ``runs.{md,csv,tex}`` and a page for
    each in its own folder. Tables and figures of the paper in the folder come first, however many
    runs there are. Nothing is run again. Returns the path of the page.
    """
    for module in ("jinja2", "PIL"):
        optional(module, extra="report", purpose="a report")
    root = Path(folder)
    of_paper = (root / INDEX).exists()
    has_runs = not of_paper or any(root.rglob("run.json"))  # some figures need none
    runs = sort_runs([Run.read(found) for found in find_runs(root)]) if has_runs else []
    several = len(runs) > 1 or of_paper
    names = [_name_below(root, run) for run in runs]
    summaries = [summarize(run.records) for run in runs]
    table = make_run_table(runs, names, summaries) if several else make_window_table(runs[0])
    table.write(root, "runs" if several else "windows")
    page = root / "report.html"
    if several:
        for run in runs:
            _write_page(run.folder.report, [run], [run.folder.path.name], None)
    _write_page(page, runs, names, table if several else None)
    return page


def _write_page(
    page: Path, runs: Sequence[Run], names: Sequence[str], overview: Table | None
) -> None:
    html = _render(page.parent, runs, names, overview)
    replace_file(page, html.encode(errors="replace"))  # file names need not be valid text


def _name_below(root: Path, run: Run) -> str:
    inside = run.folder.path.relative_to(root)
    return inside.as_posix() if inside.parts else run.folder.path.resolve().name


def _render(root: Path, runs: Sequence[Run], names: Sequence[str], overview: Table | None) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("cilf.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "show": format_cell,
        "percent": format_percent,
        "missing": is_missing,
        "signed": charts.format_signed,
    }
    with_images = len(runs) <= MAX_RUNS_WITH_IMAGES
    views = [_view(run, name, with_images) for run, name in zip(runs, names, strict=True)]
    title = runs[0].name if overview is None else f"{len(runs)} runs"
    return environment.get_template("report.html.j2").render(
        title=title,
        overview=overview,
        views=views,
        with_images=with_images,
        shared=_find_shared(runs),
        paper_items=read_paper_items(root),
    )


def _find_shared(runs: Sequence[Run]) -> dict[str, str]:
    """Find what is the same in every run; the page says it once."""
    values = {key: {_format_shared(run.about.get(key)) for run in runs} for key in SHAREABLE}
    return {key: found.pop() for key, found in values.items() if len(found) == 1}


def _format_shared(value: Any) -> str:
    return (" ".join(value) or "none") if isinstance(value, list) else format_cell(value)


def _view(run: Run, name: str, with_images: bool) -> dict[str, Any]:
    """Collect what the template says about a run."""
    summary = summarize(run.records)
    return {
        "name": name,
        "run": run,
        "about": run.about,
        "summary": summary,
        "sentence": describe_run(run, summary),
        "rows": describe_data(run.dataset),
        "tiles": _tiles(summary),
        "table": make_window_table(run),
        "footer": make_window_footer(run, summary),
        "detected": run.about.get("protocol") != GIVEN,
        "stream": heatmaps.make_stream_heatmap(run),
        "counts": charts.plot_counts(run.records),
        "metrics": charts.plot_metrics(run.records),
        "windows": [_window_view(run, record) for record in run.records] if with_images else [],
        "accuracy": heatmaps.make_accuracy_heatmap(run),
        "provenance": _provenance(run),
        "command": format_command(run.about),
    }


def _tiles(summary: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """(title, value, meaning) of the metrics at the top of the page."""
    return [
        (METRICS[name].title, format_cell(summary[name]), METRICS[name].meaning)
        for name in TILES
        if summary["n_windows"] == 0 or not is_missing(summary[name])
    ]


def _window_view(run: Run, record: WindowRecord) -> dict[str, Any]:
    snapshot = run.snapshot(record.window)
    view: dict[str, Any] = {"record": record, "has_snapshot": snapshot is not None}
    if snapshot is None:
        return view
    truth = to_text(snapshot.truth)
    novel = set(truth[snapshot.novel].tolist())
    present = [name for name in run.classes if name in truth]
    return view | {
        "map": scatter.plot_embedding(snapshot, record.window, run.styles),
        "clusters": exemplars.select_exemplars(snapshot, run.styles),
        "form": exemplars.find_form(snapshot),
        "missed": exemplars.select_missed(snapshot),
        "legend": [
            (name, run.styles[name].legend_key(name in novel), name in novel) for name in present
        ],
        "n_instances": len(truth),
        "n_wrong": int((~find_correct(snapshot)).sum()),
    }


def _provenance(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """List what it takes to make the run again, as blocks of (name, value)."""
    about = run.about
    facts = {key: about.get(key) for key in FACTS}
    blocks = {
        "Run": facts,
        "Data": list_data_facts(run.dataset) | _features(run),
        "Learner's parameters": _name_parameters(about.get("parameters") or {}),
        "Stream's arguments": about.get("stream") or {},
        "Versions": about.get("versions") or {},
        "Machine": about.get("machine") or {},
    }
    return [
        (name, [(k, _format_value(v)) for k, v in block.items()]) for name, block in blocks.items()
    ]


def _name_parameters(nested: dict[str, Any]) -> dict[str, Any]:
    """Parameters by the names that ``--set`` takes."""
    return {to_dotted(name): value for name, value in flatten(nested).items()}


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(item) for item in value)
    return str(value)


def format_command(about: dict[str, Any]) -> str:
    """Format the command that makes the run again.

    >>> format_command({"learner": "cilf", "data": "digits", "scenario": "single", "seed": 3})
    'cilf run --learner cilf --data digits --scenario single --seed 3'
    """
    given = [("learner", about.get("learner_path") or about.get("learner"))]
    given += [(key, about.get(key)) for key in ("data", "scenario", "seed", "scale")]
    given += [("query", about.get("query")), ("n-novel", about.get("n_novel"))]
    given += [(key, about.get(key)) for key in ("strategy", "propagate", "protocol")]
    given = [option for option in given if option not in USUAL]
    given += [("set", change) for change in about.get("changes") or ()]
    options = [f"--{key} {shlex.quote(str(value))}" for key, value in given if value is not None]
    return " ".join(["cilf run", *options])


def _features(run: Run) -> dict[str, str]:
    features = run.about.get("frozen_network", run.about.get("features"))
    return {"features": f"{features} (pre-trained, frozen)"} if features else {}
