from __future__ import annotations

import pytest

from cilf.benchmark.scales import ANY, GANS, SCALES, default_scale, setting
from cilf.errors import BadConfig


def test_small_data_are_run_at_smoke() -> None:
    assert (default_scale("digits"), default_scale("mnist"), default_scale("own/")) == (
        "smoke", "cpu", "cpu",
    )  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
def test_other_data_have_a_row_of_their_own(scale: str) -> None:
    assert setting(scale, "photos/").stream == SCALES[scale][ANY].stream


def test_a_row_is_joined_with_the_budgets_of_the_whole_scale() -> None:
    budgets = setting("cpu", "mnist").learner
    assert budgets["memory_size"] == 500
    assert GANS["cpu"].items() <= budgets.items()


def test_an_unknown_scale_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match="did you mean 'smoke'"):
        setting("smok", "digits")
