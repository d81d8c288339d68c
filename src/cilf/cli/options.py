"""Options that several commands take, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cilf.errors import BadConfig

INTERRUPTED = 130  # exit code of a command that was stopped from the keyboard

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="Log the records for TensorBoard too.")
]
ON_RAY = "Engine ray"
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Cells at once (default: as many as fit).")
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine", metavar="local|ray", help="Processes on this machine, or a Ray cluster."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Of a cluster that is there, or 'auto'.", rich_help_panel=ON_RAY),
]
GpuShare = Annotated[
    float | None,
    typer.Option(
        help="Part of a GPU for each cell; 0.25 puts four on one.", rich_help_panel=ON_RAY
    ),
]
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


def given(**options: object) -> dict[str, Any]:
    """Those options that were given."""
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


def require_outside(data: str | Path, out: Path) -> None:
    """Refuse to write into a folder of images: what is written would be data the next time.

    A text may be the name of a data set, a path never is.
    """
    from cilf.data import DATASETS
    from cilf.data.paths import lies_inside

    if data not in DATASETS and lies_inside(out, str(data)):
        raise BadConfig(f"{out} lies inside the data ({data}): name a place outside with --out.")
