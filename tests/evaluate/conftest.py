from __future__ import annotations

import pytest

from cilf.data import load_dataset
from cilf.stream import Stream, multiple_novel


@pytest.fixture(scope="session")
def stream() -> Stream:
    """Four small windows of digits: two with two new classes, one with none, one with three."""
    return multiple_novel(load_dataset("digits"), n_quiet=1, initial_size=40, window_size=12)
