"""The prediction server in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cilf.errors import BadConfig, BadInput
from cilf.serving.server import serve


def test_it_answers_and_ends_in_order(model: Path) -> None:
    command = [sys.executable, "-m", "cilf", "serve", str(model), "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        answer = httpx.post(f"{url}predict", json={"instance": [6, 0]}, timeout=60)
        assert answer.json()["predictions"][0]["label"] == "right"
        assert httpx.get(f"{url}healthz", timeout=60).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)


def test_any_other_address_demands_a_token(model: Path) -> None:
    with pytest.raises(BadConfig, match="lets other machines in"):
        serve(model, host="0.0.0.0")


def test_what_is_no_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name a model folder"):
        serve(tmp_path / "nothing")
