"""The floor: nothing is called novel and nothing is learned."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cilf.core.types import Array
from cilf.data import load_dataset
from cilf.evaluate import run_stream
from cilf.learners import Never
from cilf.stream import multiple_novel

Digits = Callable[..., tuple[Array, Array]]


@pytest.mark.parametrize("n_novel", [None, 0, 3])
def test_nothing_is_novel_whatever_number_is_given(digits: Digits, n_novel: int | None) -> None:
    learner = Never(epochs=3).fit(*digits(range(3), 0, 30))
    found = learner.detect(digits(range(3, 6), 0, 20)[0], n_novel=n_novel)
    assert found.n_novel == 0
    assert not found.is_novel.any()


def test_an_update_changes_no_prediction(digits: Digits) -> None:
    learner = Never(epochs=3).fit(*digits(range(3), 0, 30))
    X: Array = digits(range(5), 40, 60)[0]
    before = learner.predict(X)
    learner.update(*digits(range(3, 5), 0, 30))
    assert np.array_equal(learner.predict(X), before)
    assert learner.classes_.tolist() == [0, 1, 2, 3, 4]


def test_it_has_a_high_na_and_an_h_of_zero() -> None:
    stream = multiple_novel(load_dataset("digits"), seed=0, n_quiet=1)
    records = list(run_stream(Never(), stream))
    for record in records:
        assert (record.n_novel_found, record.n_queried) == (0, 0)
        if record.n_novel_planned:
            assert (record.h, record.extra["plan_h"], record.aus) == (0.0, 0.0, 0.0)
            assert record.na > 0.4
        else:
            assert math.isnan(record.extra["plan_h"])
