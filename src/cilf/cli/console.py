"""The commands ``cilf console``, ``cilf backup`` and ``cilf restore``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import Encoders
from cilf.cli.server_options import Host, Port, Token, TokenFile, read_token

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="CILF_DATABASE",
        help="A PostgreSQL database (default: a file of SQLite in the store).",
    ),
]


def console(
    context: typer.Context,
    store: Annotated[Path, typer.Option(help="The folder of windows, labels and thumbnails.")],
    host: Host = "127.0.0.1",
    port: Port = 8377,
    token: Token = None,
    token_file: TokenFile = None,
    model: Annotated[
        Path | None, typer.Option(help="The model folder (default: 'model' in the store).")
    ] = None,
    database: Database = None,
    encoder: Encoders = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A folder that may be read; repeatable (default without --token: all)."),
    ] = None,
) -> None:
    """Serve the labelling page: inspect and name novel clusters, update the model."""
    from cilf.console.server import serve

    token = read_token(context, token, token_file)

    def announce(address: str) -> None:
        terminal.print_line(f"cilf console: {address}  (Ctrl+C stops it)")

    serve(
        store, host=host, port=port, token=token, model=model, database=database,
        roots=data or (), announce=announce,
    )  # fmt: skip


def backup(
    store: Annotated[Path, typer.Argument(help="The folder of a console, which may be running.")],
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    database: Database = None,
) -> None:
    """Write a backup of a console's store to one file, while the console runs."""
    from cilf.console.server import require_console_extra

    require_console_extra()
    from cilf.console.backup import back_up

    terminal.print_line(f"{file}: {_describe_counts(back_up(store, file, database))}")
    if not (store / "model").exists():
        terminal.print_message("The model is not in the store: copy its folder as well.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file of 'cilf backup'.")],
    store: Annotated[Path, typer.Argument(help="The folder to make; an empty one may be there.")],
    database: Database = None,
) -> None:
    """Make a console's store from a backup, on SQLite or PostgreSQL."""
    from cilf.console.server import require_console_extra

    require_console_extra()
    from cilf.console.backup import restore as restore_store

    terminal.print_line(f"{store}: {_describe_counts(restore_store(file, store, database))}")


def _describe_counts(counts: Mapping[str, int]) -> str:
    shown = ("windows", "events", "files")
    return ", ".join(f"{counts[name]} {name}" for name in shown)
