"""The task that learners are checked on."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.checks.data import KNOWN, LATER, NOVEL, forms, task
from cilf.learners.cfo import CFO
from cilf.learners.iforest import IForest


@pytest.mark.parametrize(
    ("form", "shape", "dtype"), [("images", (8, 8), "uint8"), ("vectors", (64,), "float32")]
)
def test_every_part_has_the_form_and_its_classes(form: str, shape, dtype: str) -> None:
    data = task(form)
    assert all(part.X.shape[1:] == shape and part.X.dtype == dtype for part in data)
    found = [set(part.y.tolist()) for part in data]
    assert found == [{*KNOWN}, {*KNOWN, NOVEL}, {NOVEL}, {LATER}, {*KNOWN, NOVEL}]


def test_fresh_instances_are_in_no_other_part() -> None:
    *others, fresh = task()
    seen = {image.tobytes() for part in others for image in part.X}
    assert not seen & {image.tobytes() for image in fresh.X}


def test_a_call_makes_new_arrays() -> None:
    spoiled = task()
    spoiled.initial.X[:] = 0
    assert not np.array_equal(task().initial.X, spoiled.initial.X)


def test_forms_follow_what_the_learner_takes() -> None:
    assert forms(IForest()) == ["images", "vectors"]
    assert forms(CFO()) == ["images"]
