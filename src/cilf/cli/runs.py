"""``cilf demo``, ``cilf run`` and ``cilf report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import (
    INTERRUPTED,
    Changes,
    ContentColumn,
    ImageSize,
    Json,
    LabelColumn,
    Scale,
    Scenario,
    SkipBad,
    TensorBoard,
    TestShare,
    Trackers,
    name_trackers,
    require_outside,
    select_given,
)
from cilf.errors import BadConfig
from cilf.query.query_policy import FOUND
from cilf.query.strategies import RANDOM

if TYPE_CHECKING:
    from cilf.benchmark import RunConfig
    from cilf.core import WindowRecord

DEMO_SEED = 0
DEMO_OUT = Path("runs/demo")


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.")] = DEMO_OUT,
    as_json: Json = False,
) -> None:
    """Run CILF on a stream of handwritten digits, and write a report. Takes seconds."""
    from cilf.benchmark import RunConfig

    config = RunConfig.of(
        learner="cilf",
        data="digits",
        scenario="multiple",
        seed=DEMO_SEED,
        stream={"n_quiet": 1},
    )
    _require_demo(config, out)
    _run(config, out, overwrite=True, as_json=as_json, hint="'cilf demo' starts anew.")


def run(
    learner: Annotated[
        str,
        typer.Option(help="Name of a learner ('cilf learners' lists them), or FILE.py:CLASS."),
    ] = "cilf",
    data: Annotated[
        str,
        typer.Option(help="Name of a data set ('cilf data' lists them), hf:ID, folder or file."),
    ] = "digits",
    scenario: Scenario = "multiple",
    seed: Annotated[int, typer.Option(help="Seed of the stream and the learner.")] = 0,
    scale: Scale = None,
    query: Annotated[
        str,
        typer.Option(
            metavar="SHARE|BUDGET|self",
            help="Labels to query in each window: a share of the instances found novel (0.2), or a "
            "number for each cluster (5). With 'self' the learner names the clusters itself.",
        ),
    ] = "1.0",
    n_novel: Annotated[
        str | None,
        typer.Option(
            help="Number of novel classes in each window, or 'true' for the true number "
            "(default: estimated)."
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help="How to choose the instances to query. One of: {strategies}."),
    ] = RANDOM,
    propagate: Annotated[
        float | None,
        typer.Option(
            metavar="PURITY",
            help="Propagate the answers to the rest of a cluster if at least this share of them "
            "agree, such as 0.8.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="Labels to learn from: of the instances found novel ('found'), or of all "
            "instances of the classes that start in a window, without a detection ('given')."
        ),
    ] = FOUND,
    changes: Changes = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run (default: runs/LEARNER-DATA-SCENARIO-seedSEED)."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.")
    ] = False,
    track: Trackers = None,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
) -> None:
    """Run a learner on a stream, and write records, snapshots and a report to a folder."""
    from cilf.benchmark import RunConfig
    from cilf.benchmark.config import parse_changes, parse_query

    if resume and overwrite:
        raise BadConfig("--resume continues a run and --overwrite replaces it: give one of them.")
    trackers = name_trackers(track, tensorboard)
    parameters, stream = parse_changes(changes or ())
    config = RunConfig.of(
        learner=learner,
        data=data,
        scenario=scenario,
        seed=seed,
        scale=scale,
        query=parse_query(query),
        n_novel=_parse_n_novel(n_novel),
        strategy=strategy,
        propagate=propagate,
        protocol=protocol,
        parameters=parameters,
        stream=stream,
        loading=select_given(
            label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
        ),
    )
    folder = out or Path("runs") / config.title
    require_outside(data, folder)
    hint = f"{folder} holds the finished windows: continue with the same command and --resume."
    _run(
        config,
        folder,
        resume=resume,
        overwrite=overwrite,
        trackers=trackers,
        as_json=as_json,
        hint=hint,
    )


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run or of several runs.")
    ],
    as_json: Json = False,
) -> None:
    """Write tables (md, csv, tex) and report.html for the runs in a folder."""
    from cilf.report import write_report

    page = write_report(folder)
    if as_json:
        terminal.print_json({"report": str(page)})
    else:
        terminal.print_line(str(page))


def _parse_n_novel(n_novel: str | None) -> int | str | None:
    try:
        return None if n_novel is None else int(n_novel)
    except ValueError:
        return n_novel


def _require_demo(config: RunConfig, out: Path) -> None:
    """Refuse to replace anything but an earlier demo."""
    from cilf.evaluate import RunFolder

    folder = RunFolder(out)
    run = folder.read_run() if folder.exists() else {}
    names = {name: getattr(config, name) for name in ("learner", "data", "scenario", "scale")}
    if run and {name: run.get(name) for name in names} != names:
        raise BadConfig(f"{out} holds another run: give the demo a folder of its own.")


def _run(
    config: RunConfig,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    trackers: Sequence[str] = (),
    as_json: bool = False,
    hint: str,
) -> None:
    from cilf.benchmark import Cell
    from cilf.evaluate import RunFolder
    from cilf.evaluate.tracking import track_records

    with terminal.show_progress():
        cell = Cell.build(config)
    records = cell.run(out, resume=resume, overwrite=overwrite)
    records = track_records(records, RunFolder(out), trackers)
    terminal.print_message(
        f"{config.learner} on {config.data}: {len(cell.stream.plan.initial)} initial "
        f"classes, {len(cell.stream)} windows"
    )
    try:
        with terminal.show_window_progress(len(cell.stream)) as windows, terminal.redirect_prints():
            finished = list(windows.follow(records))
    except KeyboardInterrupt:
        terminal.print_message(f"stopped. {hint}")
        raise typer.Exit(INTERRUPTED) from None
    _show(finished, out, _write_page(out), as_json)


def _write_page(out: Path) -> Path | None:
    from cilf.report import write_report

    try:
        return write_report(out)
    except BadConfig as missing:
        terminal.print_message(f"no report.html: {missing}")
        return None


def _show(records: list[WindowRecord], out: Path, page: Path | None, as_json: bool) -> None:
    from cilf.evaluate import RunFolder, summarize

    summary = summarize(records)
    if as_json:
        terminal.print_json(
            {
                "out": str(out),
                "run": RunFolder.open(out).read_run(),
                "records": [record.to_json() for record in records],
                "summary": summary,
                "report": None if page is None else str(page),
            }
        )
        return
    terminal.print_windows(records)
    terminal.print_line(terminal.format_summary(summary))
    terminal.print_line(f"report: {page}" if page else f"run: {out}")
