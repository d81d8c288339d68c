from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.learners.den.block_task import Expansion, one_against_rest
from cilf.learners.den.expandable import ExpandableBlock


def test_a_new_block_has_no_more_units_than_allowed() -> None:
    assert Expansion(hidden_units=8, hidden_layers=2).first_stamp(3) == [8, 8, 3]
    assert Expansion(hidden_units=8, max_units=5).first_stamp(3) == [5, 3]


def test_layers_get_at_most_ex_k_units_and_stay_within_the_bound() -> None:
    block = ExpandableBlock(3, [(4, 9, 12, 2)])
    assert Expansion(ex_k=5, max_units=10).room(block) == [5, 1, 0]


def test_the_loss_is_the_sum_of_binary_cross_entropies() -> None:
    logits, targets = torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]])
    expected = -np.log(1 / (1 + np.exp(-2.0))) - np.log(1 - 1 / (1 + np.exp(1.0)))
    assert one_against_rest(logits, targets).item() == pytest.approx(expected)
    assert one_against_rest(logits.repeat(5, 1), targets.repeat(5, 1)).item() == pytest.approx(
        expected
    )
