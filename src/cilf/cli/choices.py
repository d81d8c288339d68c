"""Help texts that list the names in a table, such as the query strategies.

A help text refers to a table in braces, as in ``"One of: {strategies}."``. The names are filled in
when the help of a command is printed, because most tables import torch, which takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.core import TyperCommand

TABLES = {
    "strategies": ("cilf.query.strategies", "STRATEGIES"),
    "scenarios": ("cilf.benchmark.presets", "SCENARIOS"),
    "scales": ("cilf.benchmark.scales", "SCALES"),
    "engines": ("cilf.benchmark.engines", "ENGINES"),
    "formats": ("cilf.workflow.model_export", "FORMATS"),
    "label_formats": ("cilf.workflow.formats", "FORMATS"),
    "trackers": ("cilf.evaluate.tracking", "TRACKERS"),
    "items": ("cilf.benchmark.paper.items", "ITEMS"),
}


class _Names(dict[str, str]):
    """The names in each table, joined; a table is imported when it is looked up."""

    def __missing__(self, table: str) -> str:
        module, name = TABLES[table]
        return ", ".join(getattr(import_module(module), name))


class CommandWithChoices(TyperCommand):
    """A command whose help lists the names in tables."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.fill_in_names()
        super().format_help(ctx, formatter)

    def fill_in_names(self) -> None:
        """Put the names in tables into the help of each parameter."""
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = text.format_map(_Names())  # type: ignore[attr-defined]
