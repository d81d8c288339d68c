"""Parameters of owners and of their parts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from sklearn.base import clone

from cilf.core import parameters, validation
from cilf.core.parameters import Part
from cilf.errors import BadConfig


@dataclass(frozen=True, kw_only=True, repr=False)
class Rule(Part):
    domains: ClassVar[Mapping[str, validation.Check]] = {"share": validation.in_range(0.0, 1.0)}

    share: float = 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class OtherRule(Part):
    size: int = 3


@dataclass(frozen=True, kw_only=True, repr=False)
class Owner(Part):
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {
        "rule": {"usual": Rule, "other": OtherRule}
    }

    k_max: int = 8
    rule: Rule | OtherRule = Rule()


def test_parameters_of_parts_are_named_after_both() -> None:
    assert Owner().get_params() == {"k_max": 8, "rule": Rule(), "rule__share": 0.5}
    assert Owner().get_params(deep=False) == {"k_max": 8, "rule": Rule()}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"k_max": 2}, Owner(k_max=2)),
        ({"rule__share": 0.1}, Owner(rule=Rule(share=0.1))),
        ({"rule": {"share": 0.1}}, Owner(rule=Rule(share=0.1))),
        ({"rule": "other"}, Owner(rule=OtherRule())),
        ({"rule__size": 5, "rule__name": "other"}, Owner(rule=OtherRule(size=5))),
        ({"rule__size": 5, "rule": "other"}, Owner(rule=OtherRule(size=5))),
        ({"rule": {"name": "other", "size": 5}}, Owner(rule=OtherRule(size=5))),
        ({"rule": OtherRule(size=4), "rule__size": 5}, Owner(rule=OtherRule(size=5))),
    ],
)
def test_changes_make_a_copy(changes: dict[str, Any], expected: Owner) -> None:
    owner = Owner()
    assert owner.replace(**changes) == expected
    assert owner == Owner()


def test_a_part_without_alternatives_is_set_by_its_parameters() -> None:
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Plain(Part):
        rule: Rule = Rule()

    with pytest.raises(BadConfig, match="rule of Plain has no names: set its parameters"):
        Plain().replace(rule="other")


def test_parts_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Owner().k_max = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k_mx": 1}, "unknown parameter of Owner 'k_mx': did you mean 'k_max'"),
        ({"rule__shre": 1}, "unknown parameter of 'rule' of Owner 'shre': did you mean 'share'"),
        ({"rule": "othr"}, "unknown rule of Owner 'othr': did you mean 'other'"),
        ({"k_max__size": 1}, "k_max of Owner has no parameters of its own"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(changes: Any, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        Owner().replace(**changes)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (Owner(rule=Rule(share=2.0)), r"rule\.share is 2\.0"),
        (Owner(rule=3), r"rule is 3: give Rule\(\.\.\.\) or OtherRule\(\.\.\.\)"),  # type: ignore[arg-type]
    ],
)
def test_checks_reach_the_parts(owner: Owner, message: str) -> None:
    parameters.check_params(Owner())
    with pytest.raises(BadConfig, match=message):
        parameters.check_params(owner)


def test_a_part_refuses_parameters_that_do_not_go_together() -> None:
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Pair(Part):
        one: bool = False
        other: bool = False

        def check_together(self, within: str) -> None:
            if self.one and self.other:
                raise BadConfig(f"{within}one and {within}other are both set.")

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Holder(Part):
        pair: Pair = Pair()

    parameters.check_params(Holder(pair=Pair(one=True)))
    with pytest.raises(BadConfig, match=r"pair\.one and pair\.other are both set"):
        parameters.check_params(Holder(pair=Pair(one=True, other=True)))


def test_json_says_which_part_it_is_and_is_read_back() -> None:
    owner = Owner(rule=OtherRule(size=5))
    plain = parameters.to_json(owner)
    assert plain == {"k_max": 8, "rule": {"name": "other", "size": 5}}
    assert Owner().replace(**plain) == owner


def test_what_differs_from_the_defaults_is_shown() -> None:
    assert repr(Owner(rule=Rule(share=0.1))) == "Owner(rule=Rule(share=0.1))"
    assert repr(Owner()) == "Owner()"


def test_clone_of_scikit_learn_makes_an_equal_part() -> None:
    assert clone(Owner(k_max=3)) == Owner(k_max=3)


def test_files_leave_out_a_later_parameter_while_it_is_what_it_was_before() -> None:
    from cilf.nn.training import Training

    assert "devices" not in parameters.to_json(Training())
    assert parameters.to_json(Training(devices=2))["devices"] == 2
