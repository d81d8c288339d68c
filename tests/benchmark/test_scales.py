from __future__ import annotations

import pytest

from cilf.benchmark.scales import ANY, GANS, OF_LEARNERS, SCALES, budgets, default_scale, setting
from cilf.errors import BadConfig
from cilf.learners import LEARNERS


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


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("data", ["digits", "mnist", "cifar100", "photos/"])
def test_only_the_learner_that_they_are_meant_for_has_its_own_budgets(
    scale: str, data: str
) -> None:
    assert budgets(scale, data, "cilf") == setting(scale, data).learner
    assert setting(scale, data).learner.keys() <= budgets(scale, data, "cilf-paper").keys()


def test_budgets_of_one_learner_are_parameters_that_it_has() -> None:
    for learner, scales in OF_LEARNERS.items():
        known = LEARNERS[learner]().get_params()
        for rows in scales.values():
            assert all(set(row) <= set(known) for row in rows.values())


def test_an_unknown_scale_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match="did you mean 'smoke'"):
        setting("smok", "digits")
