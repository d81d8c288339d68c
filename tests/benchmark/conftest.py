from __future__ import annotations

from pathlib import Path

import pytest

from cilf.benchmark import Grid

from .grids import SLOW, SMALL, own_grid


@pytest.fixture
def slow(tmp_path: Path) -> tuple[Grid, Path]:
    """Two cells that wait after their first window, and the file that lets them go on."""
    gate = tmp_path / "gate"
    made = own_grid(
        tmp_path / "slow.py", SLOW, "Slow", {"gate": str(gate)}, stream=SMALL | {"n_windows": 3}
    )
    return made, gate
