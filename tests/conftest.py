"""What tests of several parts share: commands, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import cli
from cilf.data import load_dataset


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


@pytest.fixture(scope="session")
def few_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with eight classes of digits, thirty images each."""
    X, y = load_dataset("digits").train
    rows = np.concatenate([np.flatnonzero(y == label)[:30] for label in range(8)])
    path = tmp_path_factory.mktemp("data") / "few.npz"
    np.savez(path, X=X[rows], y=y[rows])
    return path


FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real one; tests that want it are skipped where there is none."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on the path")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()
