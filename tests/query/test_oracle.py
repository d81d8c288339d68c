from __future__ import annotations

import numpy as np

from cilf.core import Window
from cilf.core.types import Ints
from cilf.query import Oracle


def rows(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def test_the_oracle_answers_what_is_queried() -> None:
    y = np.array(["a", "b", "c", "b"])
    oracle = Oracle(Window(1, np.zeros((4, 1)), y, ("c",), ("a", "b"), np.arange(4)))
    assert oracle.answer(rows(2, 0)).tolist() == ["c", "a"]
    assert oracle.answer(rows()).tolist() == []
    assert oracle.answer(rows(1)).tolist() == ["b"]
