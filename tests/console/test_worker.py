from __future__ import annotations

import os
from pathlib import Path

import pytest

from cilf.console import jobs, worker


def test_a_worker_without_its_server_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[object, ...]] = []
    monkeypatch.setattr(jobs, "run_worker", lambda *given: runs.append(given))
    monkeypatch.setattr(worker.sys, "platform", "other")  # no signal for the process of the tests
    worker.main([str(os.getpid()), str(tmp_path), "model", "null"])
    assert runs == []
    worker.main([str(os.getppid()), str(tmp_path), "model", "null"])
    worker.main([str(os.getppid()), str(tmp_path), "model", '["/data"]'])
    assert runs == [(tmp_path, Path("model"), None), (tmp_path, Path("model"), [Path("/data")])]
