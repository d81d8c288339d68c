from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cilf.errors import BadConfig
from cilf.query.budget import check_query, count_queries, is_budget


@pytest.mark.parametrize("query", [0, 3, np.int64(3), 0.0, 0.2, 1.0, np.float32(0.5), "self"])
def test_shares_budgets_and_self_are_queries(query: Any) -> None:
    check_query(query)


@pytest.mark.parametrize("query", [-1, 1.1, -0.1, True, None, "all", math.nan, [1]])
def test_anything_else_is_refused(query: Any) -> None:
    with pytest.raises(BadConfig, match=r"give a share from .* a whole number"):
        check_query(query)


def test_one_is_a_budget_and_one_point_zero_a_share() -> None:
    assert is_budget(1)
    assert not is_budget(1.0)
    assert (count_queries(1, 40), count_queries(1.0, 40)) == (1, 40)


def test_a_share_is_rounded_up_but_not_by_a_rounding_error() -> None:
    assert [count_queries(tenths / 10, 30) for tenths in range(11)] == list(range(0, 31, 3))
    assert count_queries(0.01, 30) == 1
