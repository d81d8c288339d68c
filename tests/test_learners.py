"""Every learner passes every check, or fails it for the reason it declares."""

from __future__ import annotations

from functools import cache

import pytest

from cilf.checks import CHECKS, check_learner, run_check
from cilf.core import validation
from cilf.learners import LEARNERS, Learner
from cilf.learners.iforest import IForest


@cache
def default(name: str) -> Learner:
    """One instance of each learner, so that its checks share what they have computed."""
    return LEARNERS[name]().set_params(**LEARNERS[name].check_parameters)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", LEARNERS)
def test_learner_passes(name: str, check: str) -> None:
    run_check(check, default(name))


@pytest.mark.parametrize("name", LEARNERS)
def test_declared_failures_are_checks_with_a_reason(name: str) -> None:
    for check, reason in LEARNERS[name].expected_failures.items():
        validation.one_of("check", check, CHECKS)
        assert len(reason.split()) > 2


@pytest.mark.parametrize("name", LEARNERS)
def test_name_is_the_one_it_is_listed_under(name: str) -> None:
    assert LEARNERS[name].name == name


def test_check_learner_runs_them_all() -> None:
    check_learner(IForest(n_estimators=20))
