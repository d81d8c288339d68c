"""The page of the command line, made from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

import typer
from markdown_table import write_table

from cilf.cli import app
from cilf.cli.choices import CommandWithChoices

HEAD = """# Command line

Every command has the option `--help`. The exit code is 0 after success, 2 for bad input or usage,
and 1 for anything else. With `--json`, a command prints one JSON document on standard output;
progress and messages go to standard error.
"""


def write_page() -> str:
    group: Any = typer.main.get_command(app)
    return "\n".join([HEAD, *_write_commands(group, "cilf")])


def _write_commands(group: Any, prefix: str) -> list[str]:
    """Each command of a group, and the commands of the groups in it."""
    parts = []
    for name, command in group.commands.items():
        parts.append(_write_command(command, f"{prefix} {name}"))
        if hasattr(command, "commands"):
            parts += _write_commands(command, f"{prefix} {name}")
    return parts


def _write_command(command: Any, name: str) -> str:
    if isinstance(command, CommandWithChoices):
        command.fill_in_names()
    options = [one for one in command.params if one.param_type_name == "option"]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([name, *map(_usage_of, arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"## {name}", inspect.cleandoc(command.help or ""), f"```\n{usage}\n```"]
    if arguments:
        rows = [(f"`{_name_of(one)}`", one.help or "") for one in arguments]
        parts.append(write_table(("argument", "description"), rows))
    shown = [one for one in options if not one.hidden]
    if shown:
        context = command.make_context(name, [], resilient_parsing=True)
        described = [(_spell(one, context), one.help or "", _default_of(one)) for one in shown]
        parts.append(write_table(("option", "description", "default"), described))
    return "\n\n".join(parts) + "\n"


def _usage_of(argument: Any) -> str:
    name = _name_of(argument) + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _name_of(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _spell(option: Any, context: Any) -> str:
    """An option with what it takes."""
    names = ", ".join(f"`{name}`" for name in option.opts)
    taken = option.display_type(context)
    return names if taken == "<bool>" else f"{names} `{option.metavar or taken}`"


def _default_of(option: Any) -> str:
    value = option.default
    if option.required:
        return "required"
    if value is None or value is False or callable(value) or value in ((), []):
        return ""
    return f"`{value}`"
