from __future__ import annotations

import numpy as np
import pytest

from cilf.data.split import hold_out
from cilf.errors import BadInput


@pytest.mark.parametrize(("share", "expected"), [(0.01, (1, 1)), (0.2, (2, 8)), (0.9, (9, 36))])
def test_a_share_of_each_class_is_held_out(share: float, expected: tuple[int, int]) -> None:
    y = np.array(["a"] * 10 + ["b"] * 40)
    test = hold_out(y, share, where="here")
    assert (test[y == "a"].sum(), test[y == "b"].sum()) == expected
    assert np.array_equal(test, hold_out(y, share, where="here"))


def test_one_instance_stays_for_training() -> None:
    assert hold_out(np.array(["a", "a", "b", "b"]), 0.9, where="here").sum() == 2


def test_a_class_with_one_instance_is_refused() -> None:
    with pytest.raises(BadInput, match="here: class 'b' has one instance only"):
        hold_out(np.array(["a", "a", "b"]), 0.2, where="here")
