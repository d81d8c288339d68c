"""Algorithm 3: what an update moves, and what holds it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from cilf import CILF
from cilf.core.types import Array

Digits = Callable[..., tuple[Array, Array]]


def update(fitted: CILF, digits: Digits, **changes: Any) -> CILF:
    learner = copy.deepcopy(fitted).set_params(**changes)
    return learner.update(*digits(range(3, 5), 60, 30))


def test_new_classes_are_learned_and_old_ones_kept(
    fitted: CILF, digits: Digits, window: Array
) -> None:
    learner = update(fitted, digits, update_epochs=10)
    X, y = digits(range(5), 100, 15)
    assert (learner.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize(
    "change",
    [{"loss__distill": 0.0}, {"loss__lambda2": 0.0}, {"loss__lambda1": 0.0}, {"update_epochs": 1},
     {"training__update_learning_rate": 0.002}, {"training__augmentation": None}],
    ids=str,
)  # fmt: skip
def test_each_parameter_changes_what_is_learned(
    change: dict[str, Any], fitted: CILF, digits: Digits, window: Array
) -> None:
    usual = update(fitted, digits, update_epochs=2).embed(window)
    changed = update(fitted, digits, **({"update_epochs": 2} | change)).embed(window)
    assert abs(usual - changed).max() > 1e-4


def test_r_holds_the_prototypes_of_known_classes(fitted: CILF, digits: Digits) -> None:
    before = fitted._centres[0]
    moved = [
        float((update(fitted, digits, loss__lambda2=weight)._centres[0][:3] - before).norm())
        for weight in (0.0, 10.0)
    ]
    assert moved[1] < moved[0]


def test_without_memory_old_prototypes_stay_where_no_instance_moves_them(
    fitted: CILF, digits: Digits
) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=0, update_epochs=1)
    learner.update(*digits([3], 60, 30))  # forgets the memory
    before = learner._centres[0].clone()
    learner.update(*digits([4], 60, 30))
    assert len(learner._memory) == 0
    assert torch.equal(learner._centres[0][:3], before[:3])
