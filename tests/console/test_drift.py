from __future__ import annotations

import numpy as np

from cilf.console.drift import shift


def test_drift_is_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 40, 8)).astype(np.float32)
    assert shift(one, other) < 0.3
    assert shift(one, other + 1) > 0.8
