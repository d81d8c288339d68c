"""The options of commands that listen: the address, and the token that requests must show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cilf.cli import terminal
from cilf.errors import BadConfig

TOKEN = "CILF_TOKEN"  # nosec B105  # the name of an environment variable

Host = Annotated[
    str, typer.Option(help="The address to listen on; any but this machine's needs a token.")
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar=TOKEN,
        help="The token that requests must show. Others on this machine see it among the "
        "processes: better give CILF_TOKEN or --token-file.",
    ),
]
TokenFile = Annotated[
    Path | None, typer.Option(help="A file with the token that requests must show.")
]


def read_token(context: typer.Context, token: str | None, file: Path | None) -> str | None:
    """The token that was given, in one of three ways; other processes do not inherit it."""
    os.environ.pop(TOKEN, None)
    if file is not None:
        return _read_file(file, token)
    if token is not None and _is_typed(context, "token"):
        terminal.print_message(
            "--token can be seen by everybody on this machine, among the processes: better give "
            "CILF_TOKEN or --token-file FILE."
        )
    return token


def _is_typed(context: typer.Context, option: str) -> bool:
    """Whether an option is on the command line, and not in the environment."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _read_file(file: Path, other: str | None) -> str:
    """The token in a file; blanks and line ends around it do not count."""
    if other is not None:
        raise BadConfig("--token-file and a token are both given: give one of them.")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--token-file: {file} cannot be read ({error}): name another.") from error
