"""Learners hold out no near-duplicate of what they train on."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.core.near_duplicates import group_near_duplicates
from cilf.learners import make
from cilf.learners.base import Learner

RNG = np.random.default_rng(0)
CLASSES = np.repeat(["a", "b"], 40)


def make_rows(at: float) -> np.ndarray:
    """Forty rows of ten scenes."""
    scenes = RNG.normal(size=(10, 40)) + at
    return np.repeat(scenes, 4, 0) + RNG.normal(scale=0.002, size=(40, 40))


@pytest.fixture(scope="module", params=["cilf", "joint", "dnn-base", "cpe"])
def learner(request: pytest.FixtureRequest) -> Learner:
    X = np.concatenate([make_rows(0), make_rows(6)])
    small = {"epochs": 1, "update_epochs": 1, "calibration_size": 6}
    if request.param == "dnn-base":
        small["replay"] = True
    return make(request.param, **small).fit(X, CLASSES)


def test_a_fit_and_an_update_keep_them_apart(learner: Learner) -> None:
    learner.update(np.concatenate([make_rows(0), make_rows(12)]), np.repeat(["a", "c"], 40))
    kept = learner.remembered()
    assert kept is not None
    assert dict(zip(*np.unique(kept.y[kept.held_out], return_counts=True), strict=True)) == {
        "a": 6, "b": 3, "c": 3,
    }  # fmt: skip
    group = group_near_duplicates(kept.X)
    assert not set(group[kept.held_out]) & set(group[~kept.held_out])
    assert len(set(group[kept.held_out])) == kept.held_out.sum()


def test_what_comes_again_is_held_out_no_longer(learner: Learner) -> None:
    kept = learner.remembered()
    assert kept is not None
    again = kept.X[kept.held_out & (kept.y == "a")] + 0.001
    learner.update(again, ["c"] * len(again))
    now = learner.remembered()
    assert now is not None
    assert (now.y[now.held_out] == "a").sum() == 0
