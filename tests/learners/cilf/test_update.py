"""Algorithm 3: what an update moves, and what holds it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF
from cilf.core.types import Array

from ...host_waits import as_on_gpu, count_waits

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
    [{"loss__distill": 0.0}, {"loss__lambda2": 1.0}, {"loss__lambda1": 0.0}, {"update_epochs": 1},
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


@pytest.mark.parametrize("batch_size", [16, 64])
def test_the_host_does_not_wait_for_a_gpu_in_a_batch(
    batch_size: int, fitted: CILF, digits: Digits
) -> None:
    def waits(epochs: int) -> int:
        changes = {"update_epochs": epochs, "training__batch_size": batch_size}
        return count_waits(lambda: update(fitted, digits, **changes))

    with as_on_gpu():
        assert waits(epochs=3) - waits(epochs=2) == 1  # for the loss of the epoch


def test_an_update_as_on_a_gpu_is_that_on_the_cpu_but_for_triplets(
    fitted: CILF, digits: Digits, window: Array
) -> None:
    changes = {
        "loss__lambda1": 0.0,  # triplets are drawn in another way there
        "training__batch_size": 1000,  # so that their draws do not change the batches
        "training__augmentation": None,
        "update_epochs": 3,
    }
    here = update(fitted, digits, **changes).embed(window)
    with as_on_gpu():
        there = update(fitted, digits, **changes).embed(window)
    assert np.allclose(here, there, atol=1e-3)
    assert not np.allclose(here, fitted.embed(window), atol=0.1)
