"""``cilf learners`` and ``cilf data``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cilf.cli import terminal
from cilf.cli.choices import CommandWithChoices
from cilf.cli.options import (
    ContentColumn,
    ImageSize,
    Json,
    LabelColumn,
    Scale,
    Scenario,
    SkipBad,
    TestShare,
    require_outside,
    select_given,
)
from cilf.errors import BadConfig

if TYPE_CHECKING:
    from cilf.data import Dataset
    from cilf.report.stream_map import PlanRow
    from cilf.stream import Stream


def learners(as_json: Json = False) -> None:
    """List the learners."""
    from cilf.core.parameters import to_json
    from cilf.learners import LEARNERS

    if as_json:
        described = [
            {"name": name, "about": _first_line(learner), "parameters": to_json(learner())}
            for name, learner in LEARNERS.items()
        ]
        terminal.print_json(described)
    else:
        rows = [(name, _first_line(learner)) for name, learner in LEARNERS.items()]
        terminal.print_table(("learner", "description"), rows)


PLAN_COLUMNS = ("window", "instances", "known", "novel classes (instances)", "vanished")

data_app = typer.Typer(invoke_without_command=True)


@data_app.callback()
def data(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and whether they are on this machine."""
    from cilf.data.listing import list_datasets
    from cilf.data.readers import describe_readers

    if context.invoked_subcommand:
        return
    sets = list_datasets()
    if as_json:
        terminal.print_json([entry.to_json() for entry in sets])
        return
    terminal.print_table(
        ("data set", "classes", "instance", "train", "test", "where", "description"),
        [entry.to_row() for entry in sets],
    )
    terminal.print_line(
        f"Or give hf:ID for a data set of the hub, or the path of: {describe_readers()}."
    )


@data_app.command(cls=CommandWithChoices)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|PATH", help="Name or path of a data set.")],
    scenario: Scenario = "multiple",
    seed: Annotated[int, typer.Option(help="Seed of the stream.")] = 0,
    scale: Scale = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="K=V",
            help="Set a parameter of the stream (stream.n_quiet=1). Repeatable.",
        ),
    ] = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File of the map (default: runs/DATA-SCENARIO-seedSEED.png)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the plan of a stream, and plot its map: class by window."""
    from cilf.benchmark import RunConfig
    from cilf.benchmark.config import data_file_name, parse_changes
    from cilf.report.stream_map import list_windows, write_stream_map

    config = RunConfig.of(
        learner="cilf",
        data=name,
        scenario=scenario,
        seed=seed,
        scale=scale,
        stream=_require_stream(parse_changes(changes or ())),
        loading=select_given(
            label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
        ),
    )
    path = out or Path("runs") / f"{data_file_name(name)}-{scenario}-seed{seed}.png"
    require_outside(name, path)
    with terminal.show_progress():
        dataset = config.load()
    stream = config.make_stream(dataset)
    write_stream_map(stream, path)
    rows = list_windows(stream)
    if as_json:
        plan = [row._asdict() for row in rows]
        about = {"name": dataset.name, **dataset.describe(), "preset": config.preset_name}
        terminal.print_json({"data": about, "plan": plan, "map": str(path)})
        return
    terminal.print_line(f"{config.preset_name}, seed {seed}: {_describe(dataset)}")
    terminal.print_table(PLAN_COLUMNS, map(_plan_row, rows))
    terminal.print_line(_describe_sizes(stream))
    terminal.print_line(f"map: {path}")


def _describe(dataset: Dataset) -> str:
    rows = f"{len(dataset.train):,} training and {len(dataset.test):,} test rows"
    chosen = f"; the seed chooses {dataset.n_drawn} of them" if dataset.n_drawn else ""
    return f"{dataset.name} has {rows} of {len(dataset.classes)} classes{chosen}"


def _plan_row(row: PlanRow) -> tuple[str, str, str, str, str]:
    new = ", ".join(f"{label} ({count})" for label, count in row.novel)
    gone = ", ".join(map(str, row.vanished))
    window = str(row.window) if row.window else "initial"
    return window, f"{row.n_instances:,}", str(row.n_known), new, gone


def _describe_sizes(stream: Stream) -> str:
    """The fewest and the most instances of a class: initial, novel, known and over all windows."""
    initial, *windows = (stream.counts(index) for index in range(len(stream) + 1))
    planned = list(zip(windows, stream.plan.windows, strict=True))
    novel = [counts[label] for counts, window in planned for label in window.novel]
    known = [counts[label] for counts, window in planned for label in window.known]
    used = sum(map(Counter, windows), Counter(initial))
    return (
        f"instances of a class: {_format_range(initial.values())} initial; in a window "
        f"{_format_range(novel)} when novel, {_format_range(known)} when known; "
        f"{_format_range(used.values())} in all"
    )


def _format_range(sizes: Collection[int]) -> str:
    fewest, most = min(sizes, default=0), max(sizes, default=0)
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _require_stream(changes: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    from cilf.core.parameters import to_dotted

    of_learner, of_stream = changes
    if of_learner:
        first = to_dotted(next(iter(of_learner)))
        raise BadConfig(f"--set {first} is a parameter of a learner: give stream.NAME=VALUE here.")
    return of_stream


def _first_line(documented: object) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0]
