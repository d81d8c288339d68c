"""``cilf demo``, ``cilf run`` and ``cilf report``."""

from __future__ import annotations

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
    given,
    require_outside,
)
from cilf.errors import BadConfig
from cilf.query.strategies import RANDOM, STRATEGIES

if TYPE_CHECKING:
    from cilf.benchmark import RunConfig
    from cilf.core import WindowRecord

DEMO_SEED = 0
DEMO_OUT = Path("runs/demo")


def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = DEMO_OUT,
    as_json: Json = False,
) -> None:
    """Watch the whole loop on handwritten digits; takes seconds, and ends with a report."""
    from cilf.benchmark import RunConfig

    config = RunConfig.of(
        learner="cilf",
        data="digits",
        scenario="multiple",
        seed=DEMO_SEED,
        stream={"n_quiet": 1, "n_vanishing": 1},
    )
    _refuse_to_replace_another(config, out)
    _run(config, out, overwrite=True, as_json=as_json, go_on="'cilf demo' starts afresh.")


def run(
    learner: Annotated[
        str, typer.Option(help="See 'cilf learners'; or your own: path/to/file.py:Class.")
    ] = "cilf",
    data: Annotated[
        str, typer.Option(help="A name ('cilf data' lists them), hf:ID, a folder or a file.")
    ] = "digits",
    scenario: Scenario = "multiple",
    seed: Annotated[int, typer.Option(help="Decides the stream and the learner.")] = 0,
    scale: Scale = None,
    query: Annotated[
        str,
        typer.Option(
            metavar="SHARE|BUDGET|self",
            help="Labels to ask for: 0.2 is a share of the instances believed new (1.0: all), 5 "
            "is so many for each new cluster, 'self' asks nobody and makes up names.",
        ),
    ] = "1.0",
    n_novel: Annotated[
        str | None,
        typer.Option(help="Tell the learner how many new classes: a number, or 'true'."),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help=f"Which instances to query: {', '.join(STRATEGIES)}."),
    ] = RANDOM,
    propagate: Annotated[
        float | None,
        typer.Option(
            metavar="PURITY",
            help="Teach the rest of a cluster too if at least this share of its answers (three or "
            "more) agree, such as 0.8.",
        ),
    ] = None,
    changes: Changes = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the run goes (default: runs/LEARNER-DATA-SCENARIO-seedSEED)."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older run.")] = False,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
) -> None:
    """Run one learner on one stream; keeps records, pictures and checkpoints in a folder."""
    from cilf.benchmark import RunConfig
    from cilf.benchmark.config import parse_changes, parse_query

    if resume and overwrite:
        raise BadConfig("--resume keeps the older run and --overwrite replaces it: give one.")
    parameters, stream = parse_changes(changes or ())
    config = RunConfig.of(
        learner=learner,
        data=data,
        scenario=scenario,
        seed=seed,
        scale=scale,
        query=parse_query(query),
        n_novel=_count(n_novel),
        strategy=strategy,
        propagate=propagate,
        parameters=parameters,
        stream=stream,
        loading=given(
            label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
        ),
    )
    folder = out or Path("runs") / config.title
    require_outside(data, folder)
    go_on = f"Finished windows are kept in {folder}: the same command with --resume goes on."
    _run(
        config,
        folder,
        resume=resume,
        overwrite=overwrite,
        tensorboard=tensorboard,
        as_json=as_json,
        go_on=go_on,
    )


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run, or a folder of runs.")],
    as_json: Json = False,
) -> None:
    """Write tables (md, csv, tex) and report.html of the runs in a folder."""
    from cilf.report import write_report

    page = write_report(folder)
    if as_json:
        terminal.print_json({"report": str(page)})
    else:
        terminal.print_line(str(page))


def _count(n_novel: str | None) -> int | str | None:
    try:
        return None if n_novel is None else int(n_novel)
    except ValueError:
        return n_novel


def _refuse_to_replace_another(config: RunConfig, out: Path) -> None:
    """The demo may replace an earlier demo, not somebody's results."""
    from cilf.evaluate import RunFolder

    folder = RunFolder(out)
    run = folder.read_run() if folder.exists() else {}
    names = {name: getattr(config, name) for name in ("learner", "data", "scenario", "scale")}
    if run and {name: run.get(name) for name in names} != names:
        raise BadConfig(f"{out} holds another run: name a folder of its own for the demo.")


def _run(
    config: RunConfig,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
    as_json: bool = False,
    go_on: str,
) -> None:
    from cilf.benchmark import Cell
    from cilf.evaluate import RunFolder
    from cilf.evaluate.tensorboard import logged, require_tensorboard

    if tensorboard:
        require_tensorboard()
    with terminal.progress():
        cell = Cell.build(config)
    coming = cell.run(out, resume=resume, overwrite=overwrite)
    if tensorboard:
        coming = logged(coming, RunFolder(out).tensorboard)
    terminal.message(
        f"{config.learner} on {config.data}: {len(cell.stream.plan.initial)} classes to start "
        f"with, then {len(cell.stream)} windows"
    )
    try:
        with terminal.progress_of(len(cell.stream)) as watch, terminal.aside():
            records = list(watch.windows(coming))
    except KeyboardInterrupt:
        terminal.message(f"stopped. {go_on}")
        raise typer.Exit(INTERRUPTED) from None
    _show(records, out, _write_page(out), as_json)


def _write_page(out: Path) -> Path | None:
    from cilf.report import write_report

    try:
        return write_report(out)
    except BadConfig as missing:  # the packages that reports need are an extra
        terminal.message(f"no report.html: {missing}")
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
    terminal.print_line(terminal.in_one_line(summary))
    terminal.print_line(f"report: {page}" if page else f"run: {out}")
