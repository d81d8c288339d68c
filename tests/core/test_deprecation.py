"""Old names work with a warning, in calls, changes and commands, for two minor releases."""

from __future__ import annotations

import tomllib
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from cilf.core import deprecation
from cilf.core.deprecation import DEPRECATED, Deprecation, OldName, parse_release
from cilf.errors import BadConfig
from cilf.learners import LEARNERS, ODIN, SENCMaS

ROOT = Path(__file__).parent.parent.parent


def of_kind(kind: str) -> list[Deprecation]:
    return [each for each in DEPRECATED if each.kind == kind]


@pytest.mark.parametrize("each", DEPRECATED, ids=lambda each: f"{each.owner} {each.old}")
def test_no_name_outlives_its_time(each: Deprecation) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert parse_release(version) < parse_release(each.gone_in), (
        f"{each.old} of {each.owner} is gone in {each.gone_in}: remove its line in DEPRECATED"
    )


def test_a_name_lives_two_minor_releases() -> None:
    assert Deprecation("option", "cilf x", "--a", "--b", since="1.9.0").gone_in == "1.11.0"


@pytest.mark.parametrize("each", of_kind("attribute"), ids=lambda each: each.old)
def test_a_module_gives_a_replaced_name_with_a_warning(each: Deprecation) -> None:
    module = import_module(each.owner)
    with pytest.warns(OldName, match=f"^{each.old} of {each.owner} is called {each.new}") as told:
        found = getattr(module, each.old)
    assert found is getattr(module, each.new)
    assert each.old not in module.__all__
    assert told[0].filename == __file__, "the warning names the line that has the old name"


def test_an_unknown_name_is_unknown() -> None:
    for module in ("cilf.query", "cilf.evaluate"):
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
            _ = import_module(module).nothing


def owners() -> list[tuple[type[Any], Deprecation]]:
    """Each learner with each of its replaced parameters."""
    return [
        (learner, each)
        for learner in LEARNERS.values()
        for each in of_kind("parameter")
        if each.owner in [base.__name__ for base in learner.__mro__]
    ]


def test_every_replaced_parameter_belongs_to_a_learner() -> None:
    assert {each for _, each in owners()} == set(of_kind("parameter"))


@pytest.mark.parametrize(("learner", "each"), owners(), ids=str)
def test_constructors_and_changes_take_replaced_parameters(
    learner: type[Any], each: Deprecation
) -> None:
    value = getattr(learner(), each.new) * 0.5
    with pytest.warns(OldName, match=f"^{each.old} of {each.owner}") as told:
        made = learner(**{each.old: value})
    assert told[0].filename == __file__
    with pytest.warns(OldName):
        changed = learner().set_params(**{each.old: value})
    assert getattr(made, each.new) == getattr(changed, each.new) == value
    assert each.old not in made.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(clone(made), each.new) == value


def test_the_old_and_the_new_name_at_once_are_refused() -> None:
    said = "^accepted_share is given by its old name, too: give accepted_share alone"
    for give in (SENCMaS, ODIN().set_params):
        with pytest.warns(OldName), pytest.raises(BadConfig, match=said):
            give(accepted=0.5, accepted_share=0.6)
        with pytest.warns(OldName), pytest.raises(BadConfig, match=said):
            give(accepted_share=0.6, accepted=0.5)


def test_a_part_keeps_its_parameters_when_it_gets_another_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Deprecation("parameter", "ODIN", "optimiser", "training", since="0.2.0")
    monkeypatch.setattr(deprecation, "DEPRECATED", (one,))
    with pytest.warns(OldName):
        assert ODIN().set_params(optimiser__batch_size=7).training.batch_size == 7


def test_options_are_replaced_in_their_command_alone() -> None:
    rename = deprecation.rename_options
    with pytest.warns(OldName, match=r"^--draw of cilf paper is called --plot since cilf 0\.2\.0"):
        assert rename(["paper", "table2", "--draw"]) == ["paper", "table2", "--plot"]
    with pytest.warns(OldName):
        assert rename(["paper", "--draw=yes"]) == ["paper", "--plot=yes"]
    for kept in ([], ["run", "--draw"], ["paper", "--", "--draw"], ["paper", "--drawing"]):
        assert rename(kept) == kept
