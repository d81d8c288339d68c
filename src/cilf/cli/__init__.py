"""The command line: arguments in, exit code out; the work is done elsewhere.

One file for each group of commands. Whatever is slow to import is imported by the command that
needs it, so that help comes at once.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from typer.exceptions import TyperException

from cilf.cli import bench, console, listings, paper, runs, terminal, workflow
from cilf.cli.options import INTERRUPTED
from cilf.errors import CilfError

DONE, FAILED, REFUSED = 0, 1, 2

app = typer.Typer(
    help="Find new classes in a stream, count them, name them, learn them, forget nothing.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (runs.demo, runs.run, bench.bench, paper.paper, runs.report, listings.learners):
    app.command()(command)
app.add_typer(workflow.app)  # fit, detect, update, predict, model, rollback
app.command()(console.console)
app.add_typer(listings.data_app, name="data", help="List the data sets, or show the stream of one.")


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
