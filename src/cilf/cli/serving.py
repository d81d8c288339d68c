"""The commands for a model in use: export, serve."""

from __future__ import annotations

import os
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


@app.command()
def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8378,
    token: Annotated[
        str | None,
        typer.Option(envvar="CILF_TOKEN", help="The token that requests must show."),
    ] = None,
    encoder: Encoders = None,
) -> None:
    """Serve predictions and detections of a model over HTTP."""
    from cilf.serving.server import serve as serve_model

    os.environ.pop("CILF_TOKEN", None)  # not for other processes

    def announce(address: str) -> None:
        terminal.print_line(f"cilf serve: {address}  (Ctrl+C stops it)")

    serve_model(model, host=host, port=port, token=token, announce=announce)
