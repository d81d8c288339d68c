from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import Learner
from cilf.learners.dnn_base import DNNBase
from cilf.nn.network import as_tensor, embed

KNOWN, NOVEL = (0, 4, 6), 2
Digits = Callable[[tuple[int, ...], int, int], tuple[Array, Array]]
Kept = Callable[[Learner], Any]


def make(digits: Digits, **parameters: object) -> DNNBase:
    return DNNBase(epochs=10, width=8, **parameters).fit(*digits(KNOWN, 0, 60))


@pytest.fixture(scope="module")
def learner(digits: Digits) -> DNNBase:
    return make(digits)


def accuracy(learner: DNNBase, digits: Digits, classes: tuple[int, ...]) -> float:
    X, y = digits(classes, 130, 160)
    return float(np.mean(learner.predict(X) == y))


def test_without_memory_it_learns_the_new_class_and_forgets_the_old_ones(
    learner: DNNBase, digits: Digits
) -> None:
    assert accuracy(learner, digits, KNOWN) > 0.9
    later = copy.deepcopy(learner).update(*digits((NOVEL,), 0, 30))
    assert accuracy(later, digits, (NOVEL,)) > 0.9
    assert accuracy(later, digits, KNOWN) < 0.5


def test_with_memory_it_keeps_the_old_ones(digits: Digits) -> None:
    later = make(digits, replay=True).update(*digits((NOVEL,), 0, 30))
    assert accuracy(later, digits, (NOVEL,)) > 0.9
    assert accuracy(later, digits, KNOWN) > 0.9


def test_without_replay_nothing_is_kept_that_it_was_trained_on(
    learner: DNNBase, digits: Digits, memory: Kept, held_out: Kept
) -> None:
    later = copy.deepcopy(learner).update(*digits((NOVEL,), 0, 30))
    assert len(memory(learner).y) == len(memory(later).y) == 0
    assert held_out(later).counts == [20, 10, 20, 20]  # of digits 0, 2, 4 and 6


def test_replay_keeps_the_size_of_the_memory_at_most(digits: Digits, memory: Kept) -> None:
    learner = make(digits, replay=True, memory_size=30)
    assert memory(learner).counts == [10, 10, 10]
    learner.update(*digits((NOVEL,), 0, 30))
    assert memory(learner).counts == [8, 7, 8, 7]  # of digits 0, 2, 4 and 6


def test_an_update_does_not_depend_on_what_is_held_out(learner: DNNBase, digits: Digits) -> None:
    blind = copy.deepcopy(learner)
    mirrored = blind._calibration.X[..., ::-1].copy()  # equal images would be near-duplicates
    blind._calibration.X[:] = mirrored  # seen in training, they would change the weights
    X, y = digits((NOVEL,), 0, 30)
    one, other = (copy.deepcopy(each).update(X, y).embed(X) for each in (learner, blind))
    assert np.array_equal(one, other)


def test_novelty_is_one_minus_the_largest_probability(learner: DNNBase, digits: Digits) -> None:
    X, _ = digits((*KNOWN, NOVEL), 100, 110)
    logits = embed(learner._network, as_tensor(X, torch.device("cpu"))).double().numpy()
    odds = np.exp(logits - logits.max(1, keepdims=True))
    expected = 1 - (odds / odds.sum(1, keepdims=True)).max(1)
    assert np.allclose(learner.detect(X).novelty, expected, atol=1e-6)


@pytest.mark.parametrize("accepted", [0.5, 0.9, 1.0])
def test_the_threshold_accepts_the_announced_share_of_held_out_instances(
    learner: DNNBase, accepted: float, held_out: Kept
) -> None:
    kept = held_out(learner)
    marked = copy.copy(learner).set_params(accepted_share=accepted).detect(kept.X).is_novel
    assert int(marked.sum()) == pytest.approx((1 - accepted) * len(kept.y), abs=1)


def test_what_cannot_work_is_refused(digits: Digits) -> None:
    with pytest.raises(BadConfig, match="replay"):
        DNNBase(replay=2).fit(*digits(KNOWN, 0, 5))
