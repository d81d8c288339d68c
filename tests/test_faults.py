"""The short form of benchmarks/faults.py: some faults of some commands, chosen by a seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("sqlalchemy")
pytest.importorskip("PIL")

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "faults.py"


def test_no_state_is_lost_and_no_command_is_stuck(tmp_path: Path) -> None:
    out = tmp_path / "faults.json"
    chosen = ("--only", "rename", "--only", "predict --overwrite")
    done = subprocess.run(  # it forks, which a process with threads must not
        [sys.executable, SCRIPT, *chosen, "--points", "24", "--changes", "16", "--out", out],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["lost"] == record["stuck"] == record["tracebacks"] == []
    assert set(record["points"].values()) == {8, 16}
    assert record["acknowledged_answers"] > 0
