"""The commands for a model in use: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal
from cilf.cli.choices import CommandWithChoices
from cilf.cli.options import Encoders, Json
from cilf.cli.workflow import Model

KILO = 1000

app = typer.Typer()


@app.command(cls=CommandWithChoices)
def export(
    model: Model,
    to: Annotated[str, typer.Option(help="The format. One of: {formats}.")] = "onnx",
    out: Annotated[Path, typer.Option(help="The file.")] = Path("model.onnx"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Export a model to one file that runs without this package."""
    from cilf import workflow

    exported = workflow.export(model, out, to=to, overwrite=overwrite)
    if as_json:
        terminal.print_json(
            {
                "file": str(out),
                "bytes": exported.size,
                "version": exported.version,
                "classes": list(exported.classes),
                "outputs": list(exported.outputs),
            }
        )
        return
    terminal.print_line(
        f"{out}: {len(exported.classes)} classes, {exported.size / KILO**2:.1f} MB; a batch gives "
        f"{', '.join(exported.outputs)}"
    )
