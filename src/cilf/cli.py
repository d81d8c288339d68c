"""The command line: arguments in, exit code out; the work is done elsewhere.

Whatever is slow to import is imported by the command that needs it, so that help comes at once.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from cilf import terminal
from cilf.errors import BadConfig, CilfError

if TYPE_CHECKING:
    from cilf.benchmark import RunConfig
    from cilf.core import WindowRecord
    from cilf.data import Dataset
    from cilf.report.stream_map import PlanRow

DEMO_SEED = 0
DEMO_OUT = Path("runs/demo")
DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Scenario = Annotated[str, typer.Option(help="single: one new class per window; multiple: several.")]
Scale = Annotated[
    str | None, typer.Option(help="smoke, cpu or paper (default: what suits the data).")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="K=V",
        help="Change a parameter of the learner, or of the stream (stream.n_quiet=1).",
    ),
]

# How to read data of one's own
OWN = "Your own data"
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column of a table with the class.", rich_help_panel=OWN
    ),
]
ContentColumn = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="COLUMN", help="Column with the text or image.", rich_help_panel=OWN
    ),
]
ImageSize = Annotated[
    int | None, typer.Option("--size", help="Pixels a side of every image.", rich_help_panel=OWN)
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out what cannot be read.", rich_help_panel=OWN)
]
TestShare = Annotated[
    float | None,
    typer.Option("--test-share", help="Share of each class to hold out.", rich_help_panel=OWN),
]

app = typer.Typer(
    help="Find new classes in a stream, count them, name them, learn them, forget nothing.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        terminal.print_line(f"cilf {version('cilf')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@app.command()
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


@app.command()
def run(
    learner: Annotated[str, typer.Option(help="See 'cilf learners'.")] = "cilf",
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
        typer.Option(help="Whom to ask about: random, representative, uncertain or mixed."),
    ] = "random",
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
        loading=_given(
            label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
        ),
    )
    folder = out or Path("runs") / f"{learner}-{_file_name(data)}-{scenario}-seed{seed}"
    _require_outside(data, folder)
    go_on = f"Finished windows are kept in {folder}: the same command with --resume goes on."
    _run(config, folder, resume=resume, overwrite=overwrite, as_json=as_json, go_on=go_on)


@app.command()
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


@app.command()
def learners(as_json: Json = False) -> None:
    """List the learners."""
    from cilf.learners import LEARNERS

    if as_json:
        described = [
            {"name": name, "about": _first_line(made_by), "parameters": made_by().get_params()}
            for name, made_by in LEARNERS.items()
        ]
        terminal.print_json(described)
    else:
        rows = [(name, _first_line(made_by)) for name, made_by in LEARNERS.items()]
        terminal.print_table(("learner", "what it does"), rows)


data_app = typer.Typer(invoke_without_command=True)
app.add_typer(data_app, name="data", help="List the data sets, or show the stream of one.")


@data_app.callback()
def data(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets: what they are, and whether they are here."""
    from cilf.data.listing import listed

    if context.invoked_subcommand:
        return
    sets = listed()
    if as_json:
        terminal.print_json([entry.to_json() for entry in sets])
        return
    terminal.print_table(
        ("data set", "classes", "instance", "train", "test", "where", "what it is"),
        [entry.to_row() for entry in sets],
    )
    terminal.print_line(
        "Also: hf:ID for a data set of the hub, or the path of a folder of images or of a table."
    )


@data_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|PATH", help="A data set.")],
    scenario: Scenario = "multiple",
    seed: Annotated[int, typer.Option(help="Decides the stream.")] = 0,
    scale: Scale = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Change the stream (stream.n_quiet=1)."),
    ] = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the picture goes (default: runs/DATA-SCENARIO-seedSEED.png)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the plan of a stream, and draw its map: class by window."""
    from cilf.benchmark import RunConfig
    from cilf.benchmark.config import parse_changes
    from cilf.report.stream_map import draw_stream_map, plan_rows

    config = RunConfig.of(
        learner="cilf",
        data=name,
        scenario=scenario,
        seed=seed,
        scale=scale,
        stream=_of_stream(parse_changes(changes or ())),
        loading=_given(
            label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
        ),
    )
    picture = out or Path("runs") / f"{_file_name(name)}-{scenario}-seed{seed}.png"
    _require_outside(name, picture)
    with terminal.progress():
        dataset = config.load()
    stream = config.make_stream(dataset)
    draw_stream_map(stream, picture)
    rows = plan_rows(stream)
    if as_json:
        plan = [row._asdict() for row in rows]
        about = {"name": dataset.name, **dataset.describe(), "preset": config.preset_name}
        terminal.print_json({"data": about, "plan": plan, "map": str(picture)})
        return
    terminal.print_line(f"{config.preset_name}, seed {seed}: {_counted(dataset)}")
    terminal.print_plan(map(_plan_row, rows))
    terminal.print_line(f"map: {picture}")


def _counted(dataset: Dataset) -> str:
    rows = f"{len(dataset.train):,} training and {len(dataset.test):,} test rows"
    drawn = f", {dataset.n_drawn} of which the seed draws" if dataset.n_drawn else ""
    return f"{dataset.name} has {rows} of {len(dataset.classes)} classes{drawn}"


def _plan_row(row: PlanRow) -> tuple[str, str, str, str, str]:
    new = ", ".join(f"{label} ({count})" for label, count in row.novel)
    gone = ", ".join(map(str, row.vanished))
    window = str(row.window) if row.window else "initial"
    return window, f"{row.n_instances:,}", str(row.n_known), new, gone


def _of_stream(changes: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    of_learner, of_stream = changes
    if of_learner:
        first = next(iter(of_learner))
        raise BadConfig(f"--set {first} is for a learner: here only stream.NAME=VALUE can be set.")
    return of_stream


def _given(**options: object) -> dict[str, Any]:
    """Those options that were given."""
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


def _file_name(data: str) -> str:
    """A name or a path as part of the name of a folder."""
    from cilf.data.paths import plain_name

    own = data if data.startswith("hf:") else plain_name(Path(data))
    return re.sub(r"[^\w.-]+", "-", own).strip("-.") or "data"


def _require_outside(data: str, out: Path) -> None:
    """Refuse to write into a folder of images: what is written would be data the next time."""
    from cilf.data import DATASETS

    folder = Path(data).expanduser()
    if not data or data in DATASETS or not folder.is_dir():
        return
    if out.resolve().is_relative_to(folder.resolve()):
        raise BadConfig(f"{out} lies inside the data ({data}): name a place outside with --out.")


def _first_line(documented: object) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0]


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
    as_json: bool = False,
    go_on: str,
) -> None:
    from cilf.benchmark import Cell

    with terminal.progress():
        cell = Cell.build(config)
    coming = cell.run(out, resume=resume, overwrite=overwrite)
    terminal.message(
        f"{config.learner} on {config.data}: {len(cell.stream.plan.initial)} classes to start "
        f"with, then {len(cell.stream)} windows"
    )
    try:
        with terminal.progress_of(len(cell.stream)) as watch:
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    sys.exit(_exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def _exit_code(arguments: list[str]) -> int:
    terminal.show_notices()
    try:
        return app(arguments or ["--help"], prog_name="cilf", standalone_mode=False) or DONE
    except CilfError as error:
        terminal.problem(str(error))
        return REFUSED
    except TyperException as error:
        terminal.problem(f"{error.format_message()} ('cilf --help' lists what there is.)")
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last stop: show what went wrong, tell the shell
        if isinstance(error, OSError) and error.filename is not None:  # says all there is to know
            terminal.problem(f"{error.filename}: {error.strerror}. Name another file or folder.")
            return REFUSED
        traceback.print_exc()
        return FAILED
