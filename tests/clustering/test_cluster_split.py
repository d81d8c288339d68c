from __future__ import annotations

import numpy as np
import pytest

from cilf.clustering.cluster_split import split_members
from cilf.errors import BadInput


def test_separate_points_are_split_apart() -> None:
    rng = np.random.default_rng(0)
    places = np.repeat([0, 9, 30], [20, 10, 5])
    embedding = rng.normal(places[:, None], 0.5, (35, 4)).astype(np.float32)
    lists = split_members(embedding, np.arange(35), 3)
    assert [len(rows) for rows in lists] == [20, 10, 5]
    assert lists == split_members(embedding, np.arange(35), 3)


def test_only_members_are_split() -> None:
    embedding = np.array([[0.0], [0.0], [7.0], [0.1]], dtype=np.float32)
    assert split_members(embedding, np.array([1, 2, 3]), 2) == [[1, 3], [2]]


def test_equal_points_cannot_be_split() -> None:
    with pytest.raises(BadInput, match="fewer than 2 different places"):
        split_members(np.ones((5, 3), dtype=np.float32), np.arange(5), 2)
