from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from cilf.cli.choices import TABLES
from cilf.query.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("command", "tables"),
    [
        (["run"], ["strategies", "scenarios", "scales"]),
        (["bench"], ["engines"]),
        (["paper"], ["items", "scales", "engines"]),
        (["data", "show"], ["scenarios", "scales"]),
    ],
)
def test_the_help_of_a_command_lists_the_names_in_its_tables(
    run: Any, command: list[str], tables: list[str]
) -> None:
    words = run(*command, "--help").out.replace(",", " ").replace(".", " ").split()
    for table in tables:
        module, name = TABLES[table]
        assert set(getattr(import_module(module), name)) <= set(words)
    assert not any("{" in word and word.strip("{}") in TABLES for word in words)


def test_a_new_strategy_is_in_the_help_of_run(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "clairvoyant", STRATEGIES["random"])
    assert "clairvoyant" in run("run", "--help").out
