"""The command line: it parses arguments, calls the package and prints results.

Each group of commands has a file. A command imports what is slow to import when it runs, so that
help is printed at once.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from typer.exceptions import TyperException

from cilf.cli import bench, console, listings, paper, runs, serving, terminal, workflow
from cilf.cli.choices import CommandWithChoices
from cilf.cli.options import DONE, FAILED, INTERRUPTED, REFUSED
from cilf.core.deprecation import rename_options
from cilf.errors import CilfError

app = typer.Typer(
    help="Find novel classes in unlabelled data, label them, and learn them without forgetting.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (runs.demo, runs.run, bench.bench, paper.paper, runs.report, listings.learners):
    app.command(cls=CommandWithChoices)(command)
app.add_typer(workflow.app)  # fit, detect, split, merge-clusters, update, predict, model, rollback
for of_console in (console.console, console.backup, console.restore):
    app.command()(of_console)
app.add_typer(serving.app)  # export, serve, watch
app.add_typer(listings.data_app, name="data", help="List the data sets, or show a stream.")


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
    """Run a command and exit with its exit code."""
    sys.exit(_exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def _exit_code(arguments: list[str]) -> int:
    terminal.show_notices()
    try:
        with terminal.show_old_names():
            current = rename_options(arguments) or ["--help"]
            return app(current, prog_name="cilf", standalone_mode=False) or DONE
    except CilfError as error:
        terminal.print_error(str(error))
        return REFUSED
    except TyperException as error:
        terminal.print_error(f"{error.format_message()} ('cilf --help' lists the commands.)")
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: print the traceback
        if isinstance(error, OSError) and error.strerror is not None:
            terminal.print_error(_explain_system_error(error))
            return REFUSED
        traceback.print_exc()
        return FAILED


def _explain_system_error(error: OSError) -> str:
    """One line about a file or a disk; the system names no file if a disk fills up."""
    if error.filename is None:
        return f"the system says: {error.strerror}. Make room, or give a folder on another disk."
    return f"{error.filename}: {error.strerror}. Give another file or folder."
