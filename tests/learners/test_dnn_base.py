from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from cilf.errors import BadConfig
from cilf.learners.dnn_base import DNNBase
from cilf.nn.network import as_tensor, embed

KNOWN, NOVEL = (0, 4, 6), 2


def digits(classes: tuple[int, ...], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    raw = load_digits()
    rows = np.stack([np.flatnonzero(raw.target == label)[first:last] for label in classes], 1)
    rows = rows.ravel()
    return np.round(raw.images[rows] * (255 / 16)).astype(np.uint8), raw.target[rows]


def fitted(**parameters: object) -> DNNBase:
    return DNNBase(epochs=10, width=8, **parameters).fit(*digits(KNOWN, 0, 60))


@pytest.fixture(scope="module")
def learner() -> DNNBase:
    return fitted()


def accuracy(learner: DNNBase, classes: tuple[int, ...]) -> float:
    X, y = digits(classes, 130, 160)
    return float(np.mean(learner.predict(X) == y))


def test_without_memory_it_learns_the_new_class_and_forgets_the_old_ones(learner: DNNBase) -> None:
    assert accuracy(learner, KNOWN) > 0.9
    later = copy.deepcopy(learner).update(*digits((NOVEL,), 0, 30))
    assert accuracy(later, (NOVEL,)) > 0.9
    assert accuracy(later, KNOWN) < 0.5


def test_with_memory_it_keeps_the_old_ones() -> None:
    later = fitted(replay=True).update(*digits((NOVEL,), 0, 30))
    assert accuracy(later, (NOVEL,)) > 0.9
    assert accuracy(later, KNOWN) > 0.9


def test_without_replay_nothing_is_kept_that_it_was_trained_on(learner: DNNBase) -> None:
    later = copy.deepcopy(learner).update(*digits((NOVEL,), 0, 30))
    assert len(learner._memory) == len(later._memory) == 0
    assert np.bincount(later._calibration.y).tolist() == [20, 20, 20, 10]


def test_replay_keeps_the_size_of_the_memory_at_most() -> None:
    learner = fitted(replay=True, memory_size=30)
    assert np.bincount(learner._memory.y).tolist() == [10, 10, 10]
    learner.update(*digits((NOVEL,), 0, 30))
    assert np.bincount(learner._memory.y).tolist() == [8, 8, 7, 7]


def test_an_update_does_not_depend_on_what_is_held_out(learner: DNNBase) -> None:
    blind = copy.deepcopy(learner)
    blind._calibration.X[:] = 0  # seen in training, it would change the weights
    X, y = digits((NOVEL,), 0, 30)
    weights = [copy.deepcopy(one).update(X, y)._network.head.weight for one in (learner, blind)]
    assert torch.equal(*weights)


def test_novelty_is_one_minus_the_largest_probability(learner: DNNBase) -> None:
    X, _ = digits((*KNOWN, NOVEL), 100, 110)
    logits = embed(learner._network, as_tensor(X, torch.device("cpu"))).double().numpy()
    odds = np.exp(logits - logits.max(1, keepdims=True))
    expected = 1 - (odds / odds.sum(1, keepdims=True)).max(1)
    assert np.allclose(learner.detect(X).novelty, expected, atol=1e-6)


@pytest.mark.parametrize("accepted", [0.5, 0.9, 1.0])
def test_the_threshold_accepts_the_announced_share_of_held_out_instances(
    learner: DNNBase, accepted: float
) -> None:
    held_out = learner._calibration
    marked = copy.copy(learner).set_params(accepted=accepted)._mark(held_out.X).marked
    assert int(marked.sum()) == pytest.approx((1 - accepted) * len(held_out), abs=1)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(BadConfig, match="replay"):
        DNNBase(replay=2).fit(*digits(KNOWN, 0, 5))
