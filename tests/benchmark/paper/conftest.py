"""Runs on little data, kept where ``cilf paper`` looks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cilf.benchmark import GridCell, run_cell
from cilf.benchmark.bench import CELLS
from cilf.benchmark.paper.results import Cell
from cilf.benchmark.paper.setup import Setup
from cilf.evaluate.records import RunFolder

KeepRun = Callable[[Setup, str, int], RunFolder]


@pytest.fixture
def keep_run(few_digits: Path, tmp_path: Path) -> KeepRun:
    """Run a learner in scenario single with a seed, below the test's folder."""

    def keep(setup: Setup, learner: str, seed: int) -> RunFolder:
        config = Cell(learner, str(few_digits), "single").config(setup, seed)
        folder = RunFolder(tmp_path / CELLS / GridCell.of(config).folder)
        list(run_cell(config, folder.path))
        return folder

    return keep
