from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners.dnn_base import DNNBase
from cilf.learners.dnn_l2 import DNNL2
from cilf.nn.anchors import Anchors

KNOWN, NOVEL, LATER = (0, 4, 6), 2, 3
Digits = Callable[[tuple[int, ...], int, int], tuple[Array, Array]]
Update = Callable[..., DNNL2]


@pytest.fixture(scope="module")
def learner(digits: Digits) -> DNNL2:
    return DNNL2(epochs=10, width=8).fit(*digits(KNOWN, 0, 60))


@pytest.fixture(scope="module")
def updated(learner: DNNL2, digits: Digits) -> Update:
    """The learner after an update with other parameters."""

    def update(**parameters: object) -> DNNL2:
        return copy.deepcopy(learner).set_params(**parameters).update(*digits((NOVEL,), 0, 30))

    return update


def moved(before: DNNBase, after: DNNBase) -> float:
    return Anchors.of(before._network).distance(after._network).item()


@pytest.mark.parametrize("l2", [1e6, 1e30])
def test_a_huge_weight_holds_what_was_there_and_lets_new_outputs_learn(
    learner: DNNL2, updated: Update, digits: Digits, l2: float
) -> None:
    later = updated(l2=l2)
    assert moved(learner, later) < 1e-8
    fresh = copy.deepcopy(learner._network.head)
    new = later._network.head
    assert torch.isfinite(new.weight).all()
    assert torch.allclose(new.weight[:3], fresh.weight, atol=1e-4)
    untrained = updated(l2=l2, update_epochs=0)._network.head
    assert not torch.allclose(new.weight[3], untrained.weight[3], atol=1e-2)
    assert np.mean(later.predict(digits((NOVEL,), 130, 160)[0]) == NOVEL) > 0.5


def test_the_larger_the_weight_the_less_moves(learner: DNNL2, updated: Update) -> None:
    distances = [moved(learner, updated(l2=l2)) for l2 in (0.0, 0.1, 1.0, 10.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 10 * distances[-1] > 0


def test_without_weight_it_is_dnn_base(learner: DNNL2, updated: Update, digits: Digits) -> None:
    base = DNNBase(epochs=10, width=8).fit(*digits(KNOWN, 0, 60))
    assert moved(learner, base) == 0.0  # a fit has no anchors
    base.update(*digits((NOVEL,), 0, 30))
    assert moved(base, updated(l2=0.0)) == 0.0
    assert moved(base, updated(l2=1.0)) > 0.0


def test_anchors_are_those_of_the_last_window(
    learner: DNNL2, updated: Update, digits: Digits
) -> None:
    first = updated(l2=0.0)
    second = copy.deepcopy(first).set_params(l2=1e6).update(*digits((LATER,), 0, 30))
    assert moved(first, second) < 1e-8
    assert moved(learner, second) > 1e-3


def test_a_negative_weight_is_refused(digits: Digits) -> None:
    with pytest.raises(BadConfig, match="l2"):
        DNNL2(l2=-1.0).fit(*digits(KNOWN, 0, 5))
