"""The program as a whole: help, version."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cilf.benchmark import Cell
from cilf.learners import persistence

SLOW = ["torch", "sklearn", "scipy", "pandas", "matplotlib", "PIL", "pyarrow", "jinja2", "fastapi"]
PROBE = """
import contextlib, io, json, sys
from cilf.cli import main

slow, commands = json.loads(sys.argv[1])
outcomes = []
for command in commands:
    before, printed = set(sys.modules), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main(command.split())
        except SystemExit as done:
            code = done.code
    imported = [name for name in slow if name in sys.modules and name not in before]
    outcomes.append((printed.getvalue(), code, imported))
print(json.dumps(outcomes))
"""


class Outcome(NamedTuple):
    """What a command prints, its exit code and the slow modules that it imports."""

    printed: str
    code: int
    imported: list[str]


def probe(commands: Iterable[str], cwd: Path) -> dict[str, Outcome]:
    """Run commands one after another in one process of their own."""
    given = json.dumps([SLOW, list(commands)])
    done = subprocess.run(
        [sys.executable, "-c", PROBE, given], capture_output=True, text=True, check=True, cwd=cwd
    )
    outcomes = [Outcome(*outcome) for outcome in json.loads(done.stdout)]
    return dict(zip(commands, outcomes, strict=True))


MISTAKES = {
    "fit nowhere": "there is no folder or file nowhere",
    "fit mnits": "did you mean 'mnist'",
    "fit digits --learner clif": "did you mean 'cilf'",
    "fit digits --set epochs": "write name=value",
    "fit digits --out notes": "notes holds other things",
    "fit digits --label kind": "digits takes no options",
    "fit digits --test-share 7": "test_share is 7",
    "fit photos": "but no class folders",
    "detect nowhere new.csv": "there is no folder nowhere",
    "detect plain nowhere": "there is no folder or file nowhere",
    "detect plain notes/a.txt": "has no suffix that can be read",
    "detect plain new.csv --out notes": "notes holds other things",
    "detect plain new.csv --seen notes": "notes holds no findings",
    "detect plain new.csv --n-novel=-1": "n_novel is -1",
    "split notes 1": "notes holds no findings",
    "merge-clusters nowhere 1 2": "there is no folder nowhere",
    "update nowhere found": "there is no folder nowhere",
    "predict nowhere new.csv": "there is no folder nowhere",
    "predict notes new.csv": "notes is no model",
    "predict plain nowhere.csv": "there is no folder or file nowhere.csv",
    "predict plain new.csv --out notes": "notes is a folder",
    "predict plain new.csv --out new.csv": "new.csv is there already",
    "model nowhere": "there is no folder nowhere",
    "rollback nowhere": "there is no folder nowhere",
}
TABLE_MISTAKES = {
    "fit new.csv": "has no column that looks like a label",
    "fit new.csv --label kind": "label column of new.csv",
    "fit mixed.csv": "could be learned from in several ways",
    "detect plain new.csv": "new.csv is a table of numbers, but the model takes images",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The outcome of each command in a folder with tables, images, and the head of a model."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "new.csv").write_text("a,b\n1,2\n")
    (folder / "mixed.csv").write_text("a,text,label\n1,one,x\n2,two,y\n")
    for name in ("photos/a.png", "notes/a.txt"):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(b"never read")
    description = {
        "learner": "iforest", "parameters": {}, "classes": ["a", "b"], "instance_shape": [8, 8],
        "features": None, "history": [], "state": {},
    }  # fmt: skip
    persistence.write(folder / "plain", description, {})
    return probe(["--help", *MISTAKES, *TABLE_MISTAKES], folder)


def test_help_comes_without_the_slow_imports(outcomes: dict[str, Outcome]) -> None:
    printed, code, imported = outcomes["--help"]
    assert (code, imported) == (0, [])
    for name in ("demo", "run", "report", "learners", "data", "split", "merge-clusters"):
        assert name in printed


@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes_are_refused_without_the_slow_imports(
    outcomes: dict[str, Outcome], command: str
) -> None:
    printed, code, imported = outcomes[command]
    assert MISTAKES[command] in printed
    assert (code, imported) == (2, [])


@pytest.mark.parametrize("command", TABLE_MISTAKES)
def test_a_table_is_refused_with_the_reader_of_tables_alone(
    outcomes: dict[str, Outcome], command: str
) -> None:
    printed, code, imported = outcomes[command]
    assert TABLE_MISTAKES[command] in printed
    assert code == 2
    assert set(imported) <= {"pyarrow", "pandas"}  # pyarrow may import pandas


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


def test_old_names_work_and_are_said_in_one_line(run: Any, tmp_path: Path) -> None:
    told = "{} is called {} since cilf 0.2.0: use the new name, cilf 0.4.0 will not know the old"
    out = str(tmp_path / "run")
    done = run("run", "--learner", "senc-mas", "--set", "accepted=2", "--out", out)
    assert told.format("accepted of SENCMaS", "accepted_share") in done.err.splitlines()[0]
    assert done.err.splitlines()[-1].startswith("error: accepted_share")
    done = run("paper", "--draw", "no-such-table")
    assert told.format("--draw of cilf paper", "--plot") in done.err.splitlines()[0]
    assert "no-such-table" in done.err.splitlines()[-1]
