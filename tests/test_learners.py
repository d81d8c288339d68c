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


def subclasses(of: type) -> set[type]:
    return {found for direct in of.__subclasses__() for found in (direct, *subclasses(direct))}


def test_every_learner_of_the_package_is_in_the_table() -> None:
    ours = {
        found
        for found in subclasses(Learner)
        if found.__module__.startswith("cilf.learners.") and "name" in vars(found)
    }
    assert set(LEARNERS.values()) == ours


def test_check_learner_runs_them_all() -> None:
    check_learner(IForest(n_estimators=20))
