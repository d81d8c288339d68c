"""Commands in the documentation run as they are written, in a folder with the data they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cilf import cli

PAGES = ("own_data.md", "queries.md")


def commands(page: str) -> list[str]:
    text = (Path(__file__).parent / page).read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.mark.parametrize("command", [line for page in PAGES for line in commands(page)])
def test_a_command_works(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "cilf"
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 0, capsys.readouterr().err
