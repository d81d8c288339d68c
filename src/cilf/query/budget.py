"""The number of instances to query: a share, a budget for each novel cluster, or none."""

from __future__ import annotations

import math
import numbers
from typing import Any, TypeGuard

from cilf.errors import BadConfig

Query = int | float | str
"""A budget for each novel cluster (int), a share of the novel instances (float), or "self"."""

SELF = "self"  # as a query: nobody is queried, and every cluster becomes a class


def check_query(query: Any) -> None:
    """Refuse a query that is neither a share, nor a budget, nor "self"."""
    if query == SELF and isinstance(query, str):
        return
    is_number = isinstance(query, numbers.Real) and not isinstance(query, bool)
    if not (is_number and 0 <= query <= (math.inf if is_budget(query) else 1.0)):
        raise BadConfig(
            f"query is {query!r}: give a share from 0.0 to 1.0, a whole number of labels for each "
            f"novel cluster, or {SELF!r}."
        )


def is_budget(query: Any) -> TypeGuard[int]:
    """Whether a query is a number of instances, not a share of them."""
    return isinstance(query, numbers.Integral)


def count_queries(query: float, n: int) -> int:
    """The number of instances to query among ``n``.

    >>> count_queries(5, 3), count_queries(0.1, 30), count_queries(0.1, 4)
    (3, 3, 1)
    """
    if is_budget(query):
        return min(int(query), n)
    return math.ceil(query * n - 1e-9)  # 0.1 * 30 is a little more than 3
