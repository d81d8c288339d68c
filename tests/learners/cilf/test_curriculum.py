"""The curriculum's weights, orders and pace, against direct computations."""

import numpy as np
import pytest
import torch

from cilf.learners.cilf import curriculum


def test_confusion_weights_by_hand() -> None:
    prototypes = torch.tensor([[0.0], [4.0]])
    z = torch.tensor([[0.0], [2.0], [9.0]])
    alpha, gamma = 0.3, 0.8
    u = []
    for point in (0.0, 2.0, 9.0):
        odds = np.exp([-alpha * point**2, -alpha * (point - 4.0) ** 2])
        u.append(-np.log(odds.max() / odds.sum()))
    threshold = 0.2 * min(u) + 0.8 * max(u)
    expected = [(value - threshold) ** 2 for value in u]
    found = curriculum.confusion_weights(z, prototypes, alpha, gamma)
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


def test_certainty_is_one_at_a_centre_and_zero_between_two() -> None:
    centres = torch.tensor([[0.0, 0.0], [2.0, 0.0], [9.0, 9.0]])
    found = curriculum.certainty(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]), centres)
    assert found.tolist() == pytest.approx([1.0, 0.0, 1 - 0.5 / 1.5])


def test_one_centre_leaves_nothing_uncertain() -> None:
    assert curriculum.certainty(torch.zeros(2, 3), torch.zeros(1, 3)).tolist() == [1.0, 1.0]


def test_ranks_of_the_window_and_of_each_cluster() -> None:
    easiness = torch.tensor([0.1, 0.9, 0.5, 0.7])
    assert curriculum.easiest_first(easiness).tolist() == [0.75, 0.0, 0.5, 0.25]
    inside = curriculum.easiest_of_each(easiness, torch.tensor([0, 0, 1, 1]))
    assert inside.tolist() == [0.5, 0.0, 0.5, 0.0]


def test_every_cluster_has_an_instance_at_any_pace() -> None:
    ranks = curriculum.easiest_of_each(torch.rand(9), torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 3]))
    chosen = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 3])[ranks < 0.01]
    assert chosen.unique().tolist() == [0, 1, 2, 3]


def test_pace_grows_to_the_whole_window() -> None:
    shares = [curriculum.pace(step, 0.2, 3.0, 10) for step in range(40)]
    assert shares == sorted(shares)
    assert shares[:10] == [0.2] * 10
    assert shares[20:] == [1.0] * 20


def test_pace_stays_at_the_whole_window_however_long_it_grows() -> None:
    assert curriculum.pace(10**6, 0.2, 3.0, 10) == 1.0
