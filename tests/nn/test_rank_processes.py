"""Processes that are really started, and really killed."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cilf.errors import BadConfig, CilfError
from cilf.nn import rank_processes
from cilf.nn.rank_processes import require_devices, run_in_ranks

from .rank_work import fail, lose_a_rank, refuse

SCRIPT = """
from cilf.learners import make

data = [[i % 7, i % 2] for i in range(60)]
make("dnn-base", epochs=1, training__devices=2).fit(data, [i % 2 for i in range(60)])
"""


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert not multiprocessing.active_children()


def test_a_killed_rank_is_one_line_and_ends_the_others() -> None:
    with pytest.raises(CilfError, match=r"^process 2 of 2 ended \(SIGKILL\) .*batch_size\.$"):
        run_in_ranks(lose_a_rank, devices=2)


def test_the_error_of_a_rank_is_raised_while_others_wait() -> None:
    with pytest.raises(BadConfig, match=r"^rate is 7: give less\.$"):
        run_in_ranks(refuse, devices=2)


def test_an_unexpected_error_comes_with_its_traceback() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)in rank [01]:.*rank_work.*ZeroDivisionError: of"):
        run_in_ranks(fail, devices=2)


def test_an_interrupt_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(ranks: Any) -> None:
        assert len(multiprocessing.active_children()) == len(ranks) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(rank_processes, "_await_result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_in_ranks(refuse, devices=2)


def test_a_script_that_would_train_again_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ran.stderr.count("Traceback") == 1  # that of the script, none of the ranks
    assert ran.stderr.splitlines()[-1].endswith("\"if __name__ == '__main__':\", or set "
                                                "training.devices=1.")  # fmt: skip


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"training\.devices is 2, but .*lambda.* top level of a"):
        run_in_ranks(lambda: 1, devices=2)


def test_a_worker_starts_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = SimpleNamespace(daemon=True, name="worker")
    monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    with pytest.raises(BadConfig, match=r"is a worker itself.*set training\.devices=1"):
        run_in_ranks(fail, devices=2)


def test_more_devices_than_there_are_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "n_cores", lambda: 3)
    assert require_devices(3, "cpu") == "cpu"
    with pytest.raises(BadConfig, match=r"training\.devices is 4, .* 3 cores: .*\(--devices 3\)"):
        require_devices(4, "cpu")


def test_a_single_device_is_not_several() -> None:
    with pytest.raises(BadConfig, match=r"device is 'cpu:0', .* set device='cpu'"):
        require_devices(2, "cpu:0")
