"""The command ``cilf console``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import Encoders


def console(
    store: Annotated[Path, typer.Option(help="The folder of windows, labels and thumbnails.")],
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8377,
    token: Annotated[
        str | None,
        typer.Option(envvar="CILF_TOKEN", help="The token that requests must show."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="The model folder (default: 'model' in the store).")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="CILF_DATABASE",
            help="A PostgreSQL database (default: a file of SQLite in the store).",
        ),
    ] = None,
    encoder: Encoders = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A folder that may be read; repeatable (default without --token: all)."),
    ] = None,
) -> None:
    """Serve the labelling page: inspect and name novel clusters, update the model."""
    from cilf.console.server import serve

    os.environ.pop("CILF_TOKEN", None)  # not for the worker

    def announce(address: str) -> None:
        terminal.print_line(f"cilf console: {address}  (Ctrl+C stops it)")

    serve(
        store, host=host, port=port, token=token, model=model, database=database,
        roots=data or (), announce=announce,
    )  # fmt: skip
