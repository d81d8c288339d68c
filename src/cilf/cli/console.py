"""The commands ``cilf console``, ``cilf backup`` and ``cilf restore``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import Encoders
from cilf.errors import BadConfig


def console(
    context: typer.Context,
    store: Annotated[Path, typer.Option(help="The folder of windows, labels and thumbnails.")],
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8377,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="CILF_TOKEN",
            help="The token that requests must show. Others on this machine see it among the "
            "processes: better give CILF_TOKEN or --token-file.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that requests must show.")
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
    if token_file is not None:
        token = _read_token(token_file, token)
    elif token is not None and _is_typed(context, "token"):
        terminal.print_message(
            "--token can be seen by everybody on this machine, among the processes: better give "
            "CILF_TOKEN or --token-file FILE."
        )

    def announce(address: str) -> None:
        terminal.print_line(f"cilf console: {address}  (Ctrl+C stops it)")

    serve(
        store, host=host, port=port, token=token, model=model, database=database,
        roots=data or (), announce=announce,
    )  # fmt: skip


def _is_typed(context: typer.Context, option: str) -> bool:
    """Whether an option is on the command line, and not in the environment."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _read_token(file: Path, other: str | None) -> str:
    """The token in a file; blanks and line ends around it do not count."""
    if other is not None:
        raise BadConfig("--token-file and a token are both given: give one of them.")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--token-file: {file} cannot be read ({error}): name another.") from error


def backup(
    store: Annotated[Path, typer.Argument(help="The folder of a console, which may be running.")],
    file: Annotated[Path, typer.Argument(help="The file to write.")],
) -> None:
    """Write a backup of a console's store to one file, while the console runs."""
    from cilf.console.server import require_console_extra

    require_console_extra()
    from cilf.console.backup import back_up

    terminal.print_line(f"{file}: {_describe_counts(back_up(store, file))}")
    if not (store / "model").exists():
        terminal.print_message("The model is not in the store: copy its folder as well.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file of 'cilf backup'.")],
    store: Annotated[Path, typer.Argument(help="The folder to make; an empty one may be there.")],
) -> None:
    """Make a console's store from a backup."""
    from cilf.console.server import require_console_extra

    require_console_extra()
    from cilf.console.backup import restore as restore_store

    terminal.print_line(f"{store}: {_describe_counts(restore_store(file, store))}")


def _describe_counts(counts: Mapping[str, int]) -> str:
    shown = ("windows", "events", "files")
    return ", ".join(f"{counts[name]} {name}" for name in shown)
