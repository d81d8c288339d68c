"""What CONTRIBUTING.md says about a learner of one's own, done to the letter."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cilf.evaluate import RunFolder, find_runs

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILE = "nearest_mean.py"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_learner_it_shows_is_checked_run_resumed_reported_and_loaded(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, check, load = blocks("python")
    assert len(learner.splitlines()) < 60
    Path(FILE).write_text(learner, encoding="utf-8")
    (grid,) = blocks("toml")
    Path(grid.partition("\n")[0].removeprefix("# ")).write_text(grid, encoding="utf-8")
    monkeypatch.syspath_prepend(".")
    exec(check, {})
    for command in "".join(blocks("sh")).splitlines():
        program, *arguments = shlex.split(command)
        done = run(*arguments)
        assert (program, done.code) == ("cilf", 0), done.err
    about = RunFolder.open("runs/mine").read_run()
    assert (about["learner"], about["learner_path"]) == ("nearest-mean", f"{FILE}:NearestMean")
    assert len(about["resumed"]) == 1
    names: dict[str, Any] = {}
    exec(load, names)
    assert len(names["learner"].classes_) == 10
    assert len(RunFolder.open("runs/mine").read_records()) == int(names["newest"].name)
    assert len(find_runs("runs/compared")) == 4
    rows = Path("runs/paper/table4.md").read_text(encoding="utf-8").splitlines()
    assert sum("| nearest-mean |" in row for row in rows) == 4  # one for each metric
    assert RunFolder.open("runs/wide").read_run()["parameters"]["reach"] == 0.99
