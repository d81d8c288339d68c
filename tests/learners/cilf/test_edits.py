"""Classes of CILF that are merged and forgotten, and labels that are taken back."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import CILF, load
from cilf.learners.cilf.joint import Joint

from .test_readout import QUICK, task, vectors


@pytest.fixture(scope="module")
def learned() -> CILF:
    return CILF(**QUICK).fit(*task(range(3), 30)).update(*task(range(3, 5), 20))


def score(learner: CILF, *without: int) -> float:
    """The accuracy on fresh instances of all classes but some."""
    X, y = task(range(5), 20, seed=1)
    rows = ~np.isin(y, [f"class {label}" for label in without])
    return float((learner.predict(X[rows]) == y[rows]).mean())


def test_a_forgotten_class_leaves_every_readout(learned: CILF) -> None:
    learner = copy.deepcopy(learned).forget("class 1")
    ridge = learner._readouts.ridge
    assert ridge is not None
    assert ridge.counts.tolist() == [22, 22, 14, 14]
    assert [len(centre) for centre in learner._centres] == [4, 4, 4]
    assert learner._memory.y.max() == learner._calibration.y.max() == 3
    assert score(learner, 1) > 0.9
    assert learner.detect(vectors(1, 30, 7), n_novel=1).is_novel.mean() > 0.9
    learner.update(vectors(1, 30, 0), ["class 1"] * 30)
    assert score(learner) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [{"memory_size": 20}, {"memory_size": 0}, {"readout": "lda"}, {"readout": "ridge"}],
)
def test_whatever_it_keeps_it_goes_on(parameters: dict[str, Any], tmp_path: Path) -> None:
    learner = CILF(**QUICK | parameters).fit(*task(range(3), 30)).update(*task(range(3, 5), 20))
    before = score(learner, 1)
    learner.forget("class 1")
    assert score(learner, 1) >= before - 0.1
    learner.merge("class 0", "class 4").retract(vectors(3, 20, 0)[:5], ["class 3"] * 5)
    learner.save(tmp_path)
    fresh, _ = task(range(5), 20, seed=1)
    assert np.array_equal(load(tmp_path).predict(fresh), learner.predict(fresh))
    learner.update(vectors(1, 30, 0), ["class 1"] * 30)
    assert learner.classes_.tolist() == ["class 0", "class 2", "class 3", "class 1"]


def test_merged_classes_are_weighed_by_their_sizes(learned: CILF) -> None:
    learner = copy.deepcopy(learned).merge("class 0", "class 4")
    for before, after in zip(learned._centres, learner._centres, strict=True):
        expected = (22 * before[0] + 14 * before[4]) / 36
        np.testing.assert_allclose(after[0], expected, rtol=1e-4, atol=1e-4)
    X, y = task(range(5), 20, seed=1)
    merged = np.where(y == "class 4", "class 0", y)
    assert (learner.predict(X) == merged).mean() > 0.8


def test_what_is_taken_back_leaves_the_memory_or_the_calibration_part(learned: CILF) -> None:
    learner = copy.deepcopy(learned)
    counts = {part: np.bincount(getattr(learner, part).y) for part in ("_memory", "_calibration")}
    assert (counts["_memory"][3], counts["_calibration"][3]) == (14, 6)
    learner.retract(vectors(3, 20, 0), ["class 3"] * 20)
    ridge = learner._readouts.ridge
    assert ridge is not None
    assert ridge.counts.tolist() == [22, 22, 22, 0, 14]  # held-out instances were never in it
    assert 3 not in learner._memory.y
    assert 3 not in learner._calibration.y
    learner.update(vectors(3, 20, 0), ["class 3"] * 20)
    assert score(learner) > 0.9


def test_joint_forgets_all_that_it_keeps() -> None:
    learner = Joint(**QUICK).fit(*task(range(3), 30)).update(*task(range(3, 4), 20))
    n = len(learner._everything)
    learner.retract(vectors(3, 20, 0), ["class 3"] * 20)
    assert len(learner._everything) == n - 14
    learner.forget("class 3", "class 0")
    assert set(learner._everything.y.tolist()) == {0, 1}
    assert learner.update(*task(range(3, 5), 20)).classes_.tolist() == [
        "class 1", "class 2", "class 3", "class 4",
    ]  # fmt: skip
