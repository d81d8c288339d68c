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


def test_near_duplicates_stay_on_one_side() -> None:
    y = np.array(["a"] * 40 + ["b"] * 40)
    group = np.arange(80) // 4
    test = hold_out(y, 0.25, where="here", group=group)
    assert [test[y == label].sum() for label in "ab"] == [8, 8]  # the most that fits in 10
    assert all(len(set(test[group == number])) == 1 for number in range(20))
    alone = hold_out(y, 0.25, where="here", group=np.arange(80))
    assert np.array_equal(alone, hold_out(y, 0.25, where="here"))


def test_an_instance_in_two_classes_is_not_held_out() -> None:
    y, group = np.array(["a", "b"] * 10), np.repeat(np.arange(10), 2)
    group[10:] = 10 + np.arange(10)
    for share in (0.1, 0.5, 0.9):
        assert not hold_out(y, share, where="here", group=group)[:10].any()


def test_a_class_of_copies_is_divided_with_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    y = np.array(["copies"] * 6 + ["b"] * 6)
    group = np.array([0] * 6 + [*range(1, 7)])
    assert hold_out(y, 0.34, where="here", group=group)[:6].sum() == 2
    assert "here: class 'copies' cannot be divided without near-duplicates" in caplog.text
