"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cilf import cli


class Outcome:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as left:
            cli.main(arguments)
        printed = capsys.readouterr()
        return Outcome(int(left.value.code or 0), printed.out, printed.err)

    return command
