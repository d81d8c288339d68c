"""The program as a whole: help, version."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import Cell


def test_help_comes_without_the_slow_imports() -> None:
    code = "import sys; from cilf.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print('slow' if 'torch' in sys.modules else 'quick')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "quick"
    for name in ("demo", "run", "report", "learners", "data"):
        assert name in done.stdout


def test_no_command_is_a_call_for_help(run: Any) -> None:
    assert (run().code, run().out) == (0, run("--help").out)


def test_version(run: Any) -> None:
    from cilf import __version__

    assert run("--version").out == f"cilf {__version__}\n"


def test_a_full_disk_is_one_line(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system names no file when a write fails."""

    def full(*given: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Cell, "build", full)
    done = run("run", "--out", str(tmp_path / "run"))
    assert done.code == 2
    assert done.err.strip().endswith(
        "the system says: No space left on device. Make room, or give a folder on another disk."
    )
