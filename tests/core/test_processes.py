from __future__ import annotations

import os

from cilf.core.processes import n_cores


def test_the_cores_are_those_that_this_process_may_use() -> None:
    assert 1 <= n_cores() <= (os.cpu_count() or 1)
