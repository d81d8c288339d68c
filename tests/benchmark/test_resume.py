"""A real process that is really killed, and what the next one makes of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import RunConfig, run_cell
from cilf.evaluate import RunFolder

QUICK = {
    "iforest": {"n_estimators": 50},
    "cilf": {"epochs": 3, "update_epochs": 2, "detector__k_max": 3},
}
PATIENCE = 120.0  # seconds until a process that does not get there is given up


def config_of(learner: str) -> RunConfig:
    return RunConfig.of(
        learner=learner, data="digits", scenario="multiple",
        parameters=QUICK[learner], stream={"n_quiet": 1, "window_size": 10},
    )  # fmt: skip


def start(config: RunConfig, out: Path, *options: str) -> subprocess.Popen[str]:
    # A background job may be started with interrupts ignored: have them on in any case.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from cilf.cli import main; main()"
    )
    changes = [part for change in config.changes() for part in ("--set", change)]
    arguments = ["run", "--learner", config.learner, *changes, "--out", str(out), *options]
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def stop(process: subprocess.Popen[str], when: Callable[[], bool], how: signal.Signals) -> str:
    """Send a signal as soon as something is so; what the process wrote to standard error."""
    deadline = time.monotonic() + PATIENCE
    while not when() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(how)
    return process.communicate(timeout=PATIENCE)[1]


def untimed(out: Path) -> list[dict[str, Any]]:
    records = [record.to_json() for record in RunFolder.open(out).read_records()]
    for record in records:
        del record["seconds_detect"], record["seconds_update"]
    return records


def uninterrupted(config: RunConfig, out: Path) -> list[dict[str, Any]]:
    assert len(list(run_cell(config, out))) == 4
    return untimed(out)


@pytest.mark.parametrize("learner", QUICK)
def test_a_run_killed_again_and_again_ends_as_if_it_never_was(tmp_path: Path, learner: str) -> None:
    config, out = config_of(learner), tmp_path / "run"
    whole = uninterrupted(config, tmp_path / "whole")
    moments = [
        (out / "checkpoint" / "000" / "model.json").exists,  # fitted
        lambda: len(RunFolder(out).read_records()) >= 1,  # recorded, perhaps not yet saved
        (out / "windows" / "002.npz").exists,  # in the middle of a window
    ]
    for moment in moments:
        process = start(config, out, "--resume")
        stop(process, moment, signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert len(RunFolder(out).read_records()) < len(whole)
    process = start(config, out, "--resume")
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert untimed(out) == whole
    assert (out / "report.html").is_file()
    assert len(RunFolder(out).read_run()["resumed"]) == len(moments)


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    config, out = config_of("iforest"), tmp_path / "run"
    process = start(config, out)
    said = stop(process, lambda: len(RunFolder(out).read_records()) >= 1, signal.SIGINT)
    assert process.returncode == 130
    assert "--resume" in said.splitlines()[-1]
    assert "Traceback" not in said
    list(run_cell(config, out, resume=True))
    assert untimed(out) == uninterrupted(config, tmp_path / "whole")
