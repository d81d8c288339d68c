"""Commands in the documentation run as they are written, in a folder with the data they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cilf import cli
from cilf.benchmark import read_grid

PAGES = ("benchmark.md", "own_data.md", "queries.md")


def blocks(page: str, kind: str) -> list[str]:
    text = (Path(__file__).parent / page).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line]


def files(page: str) -> dict[str, str]:
    """The TOML files of a page, each with its name in the first line."""
    found = blocks(page, "toml")
    return {block.partition("\n")[0].removeprefix("# "): block for block in found}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in files(page).items():
        Path(name).write_text(text, encoding="utf-8")
    for command in commands(page):
        run(command, capsys)


def test_every_grid_of_a_page_can_be_read() -> None:
    for name, text in files("benchmark.md").items():
        Path(name).write_text(text, encoding="utf-8")
    assert len(read_grid("compare.toml").cells()) == 12
    cells = read_grid("weights.toml").cells()
    assert [cell.config.parameters["lambda2"] for cell in cells] == [0.1, 1.0, 0.1, 1.0]


def run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "cilf"
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 0, command + capsys.readouterr().err
