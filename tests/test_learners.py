"""Every learner passes every check, or fails it for the reason it declares."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache

import pytest

from cilf.checks import CHECKS, check_learner, run_check
from cilf.core import validation
from cilf.core.parameters import Part, defaults
from cilf.learners import LEARNERS, EditableLearner, Learner
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


def parts_of(owner: type) -> list[type]:
    """The owner, and the types of its parts."""
    parts = [type(value) for value in defaults(owner).values() if isinstance(value, Part)]
    for alternatives in getattr(owner, "alternatives", {}).values():
        parts += alternatives.values()
    return [owner, *(inner for part in dict.fromkeys(parts) for inner in parts_of(part))]


def repr_of(value: str) -> str:
    """A part is written as a call, everything else as a literal."""
    return value if value.endswith(")") else repr(ast.literal_eval(value))


@pytest.mark.parametrize("name", LEARNERS)
def test_every_parameter_is_documented_with_its_default(name: str) -> None:
    for owner in parts_of(LEARNERS[name]):
        listed = [c for c in owner.__mro__ if c is owner or c in LEARNERS.values()]
        described: dict[str, str] = {}  # Joint has those of CILF, CILFPaper other defaults
        for text in (inspect.getdoc(c) or "" for c in reversed(listed)):
            described |= dict(re.findall(r"^(\w+) : (\S.*)$", text, re.M))
        assert not set(defaults(owner)) - set(described), owner
        for parameter, about in described.items():
            if value := re.search(r"default=(\S+)$", about):
                assert repr(defaults(owner)[parameter]) == repr_of(value[1]), (owner, parameter)


@pytest.mark.parametrize("name", LEARNERS)
def test_constructors_and_inheritance_are_small(name: str) -> None:
    assert all(len(defaults(owner)) <= 15 for owner in parts_of(LEARNERS[name]))
    ours = [c for c in LEARNERS[name].__mro__ if c.__module__.startswith("cilf.")]
    assert len([c for c in ours if c is not EditableLearner]) <= 3  # it says what a learner can do


def test_check_learner_runs_them_all() -> None:
    check_learner(IForest(n_estimators=20))
