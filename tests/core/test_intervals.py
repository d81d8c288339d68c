from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from cilf.core.intervals import bound_share


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 20), (20, 20), (77, 150)])
def test_the_interval_of_a_share_is_that_of_wilson(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(confidence_level=0.9, method="wilson")
    assert bound_share(k / n, n, z=1.6448536) == pytest.approx((expected.low, expected.high))


def test_a_share_that_is_certain_has_bounds_between_0_and_1() -> None:
    for n in np.arange(1, 200).tolist():
        (low, _), (_, high) = bound_share(0.0, n, 1.96), bound_share(1.0, n, 1.96)
        assert (low, high) == (0.0, pytest.approx(1.0))
        assert high <= 1.0
