"""The program as a whole: help, version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cilf.learners import persistence

SLOW = ("torch", "sklearn", "scipy", "pandas", "matplotlib", "PIL", "pyarrow", "jinja2", "fastapi")
PROBE = f"""
import sys
from cilf.cli import main
try:
    main(sys.argv[1:])
except SystemExit as done:
    slow = [name for name in {SLOW} if name in sys.modules]
    print(done.code, *slow, file=sys.stderr)
"""


def probe(*arguments: str, cwd: Path) -> tuple[str, list[str]]:
    """Run a command in a process of its own; returns its output, its exit code and slow imports."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        capture_output=True, text=True, check=True, cwd=cwd,
    )  # fmt: skip
    *messages, last = done.stderr.splitlines()
    return done.stdout + "\n".join(messages), last.split()


def test_help_comes_without_the_slow_imports(tmp_path: Path) -> None:
    printed, found = probe("--help", cwd=tmp_path)
    assert found == ["0"]
    for name in ("demo", "run", "report", "learners", "data"):
        assert name in printed


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a model whose tensors are not needed, and a folder of notes."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "new.csv").write_text("a,b\n1,2\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("a")
    description = {
        "learner": "iforest", "parameters": {}, "classes": ["a", "b"], "instance_shape": [8, 8],
        "features": None, "history": [], "state": {},
    }  # fmt: skip
    persistence.write(folder / "plain", description, {})
    return folder


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("fit nowhere", "there is no folder or file nowhere"),
        ("fit mnits", "did you mean 'mnist'"),
        ("fit digits --learner clif", "did you mean 'cilf'"),
        ("fit digits --set epochs", "write name=value"),
        ("fit digits --out notes", "notes holds other things"),
        ("detect nowhere new.csv", "there is no folder nowhere"),
        ("detect plain nowhere", "there is no folder or file nowhere"),
        ("detect plain notes/a.txt", "has no suffix that can be read"),
        ("detect plain new.csv --out notes", "notes holds other things"),
        ("detect plain new.csv --seen notes", "notes holds no findings"),
        ("update nowhere found", "there is no folder nowhere"),
        ("predict nowhere new.csv", "there is no folder nowhere"),
        ("predict notes new.csv", "notes is no model"),
        ("predict plain nowhere.csv", "there is no folder or file nowhere.csv"),
        ("model nowhere", "there is no folder nowhere"),
        ("rollback nowhere", "there is no folder nowhere"),
    ],
)
def test_mistakes_are_refused_without_the_slow_imports(
    files: Path, command: str, problem: str
) -> None:
    printed, found = probe(*command.split(), cwd=files)
    assert problem in printed
    assert found == ["2"]


def test_no_command_is_a_call_for_help(run: Any) -> None:
    assert (run().code, run().out) == (0, run("--help").out)


def test_version(run: Any) -> None:
    from cilf import __version__

    assert run("--version").out == f"cilf {__version__}\n"
