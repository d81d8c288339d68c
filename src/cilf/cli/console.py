"""The command that serves the labelling page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal


def console(
    store: Annotated[Path, typer.Option(help="A folder for windows, labels and thumbnails.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's demands a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8377,
    token: Annotated[
        str | None,
        typer.Option(envvar="CILF_TOKEN", help="What people have to know (or CILF_TOKEN)."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A model folder (default: 'model' in the store).")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="CILF_DATABASE",
            help="postgresql://... in place of a file of SQLite in the store.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder that windows may be pointed at; repeatable. Without --token: all."
        ),
    ] = None,
) -> None:
    """Serve the labelling page: see what is new, name it, have it learned."""
    from cilf.console.server import serve

    os.environ.pop("CILF_TOKEN", None)  # not for the worker

    def tell(address: str) -> None:
        terminal.print_line(f"cilf console: {address}  (Ctrl+C stops it)")

    serve(
        store, host=host, port=port, token=token, model=model, database=database,
        roots=data or (), tell=tell,
    )  # fmt: skip
