"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from cilf.core.extras import ENCODERS
from cilf.errors import BadConfig

DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130  # exit codes

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help="Also log the records for a tracker. One of: {trackers}. Repeatable.",
    ),
]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="The same as --track tensorboard.")
]
ON_RAY = "Engine ray"
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of cells that run at once (default: as many as fit)."),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Run nothing; print the number of cells and the time they would take."
    ),
]
EngineName = Annotated[
    str,
    typer.Option("--engine", metavar="NAME", help="Where cells run. One of: {engines}."),
]
Address = Annotated[
    str | None,
    typer.Option(help="Address of a running cluster, or 'auto'.", rich_help_panel=ON_RAY),
]
GpuShare = Annotated[
    float | None,
    typer.Option(
        help="Share of a GPU for each cell; with 0.25 four cells share one.", rich_help_panel=ON_RAY
    ),
]
RowEngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Where instances are read, embedded and assigned: local, or ray (a cluster).",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of blocks of instances at once (default: as many as the cluster has cores).",
        rich_help_panel=ON_RAY,
    ),
]
Scenario = Annotated[
    str,
    typer.Option(
        help="How many novel classes start in a window: one or several. One of: {scenarios}."
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="Size of the stream and budget of the learner (default: depends on the data). "
        "One of: {scales}."
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="K=V",
        help="Set a parameter of the learner, or of the stream (stream.n_quiet=1). Repeatable.",
    ),
]

# How to read the user's own data
OWN = "Your own data"
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Column of the classes.", rich_help_panel=OWN),
]
ContentColumn = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="COLUMN", help="Column of the texts or images.", rich_help_panel=OWN
    ),
]
ImageSize = Annotated[
    int | None, typer.Option("--size", help="Side of every image in pixels.", rich_help_panel=OWN)
]


def _name_encoders(paths: list[str] | None) -> list[str] | None:
    """Name files for this process and for those that it starts."""
    if paths:
        os.environ[ENCODERS] = "\n".join(map(_make_absolute, paths))
    return paths


def _make_absolute(encoder: str) -> str:
    """A path that holds wherever a process is; the name of a text model stays."""
    return str(Path(encoder).absolute()) if Path(encoder).exists() else encoder


Encoders = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder",
        metavar="FILE",
        help="The network of your own that the model was made with: an ONNX file, a folder of a "
        "text model, or sentence:NAME. Repeatable.",
        callback=_name_encoders,
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out unreadable instances.", rich_help_panel=OWN)
]
TestShare = Annotated[
    float | None,
    typer.Option("--test-share", help="Share of each class for the test.", rich_help_panel=OWN),
]


def name_trackers(track: list[str] | None, tensorboard: bool) -> tuple[str, ...]:
    """The trackers that were asked for, each of which must be there."""
    names = tuple(dict.fromkeys([*(track or ()), *(["tensorboard"] if tensorboard else [])]))
    if names:
        from cilf.evaluate.tracking import require_trackers

        require_trackers(names)
    return names


def select_given(**options: object) -> dict[str, Any]:
    """Select the options that were given."""
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


def require_outside(data: str | Path, out: Path) -> None:
    """Refuse to write into a folder of images: the files would be data the next time.

    A string may be the name of a data set, a path never is.
    """
    from cilf.data import DATASETS
    from cilf.data.paths import lies_inside

    if data not in DATASETS and lies_inside(out, str(data)):
        raise BadConfig(f"{out} lies inside the data ({data}): give a folder outside with --out.")
