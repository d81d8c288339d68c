from __future__ import annotations

import math

import numpy as np
import pytest

from cilf.learners.iforest import IForest
from cilf.workflow.comparison import (
    ClassChange,
    Score,
    explain_refusal,
    mean_loss,
    update_and_compare,
)

NONE = Score(0, math.nan, math.nan)


def change(label: str, before: float, after: float, n: int = 20) -> ClassChange:
    return ClassChange(label, held_out=Score(n, before, after), memory=Score(100, 1.0, 1.0))


def test_an_update_is_measured_on_what_the_model_keeps() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (0, 4)])
    learner = IForest(n_estimators=5, memory_size=40).fit(X, ["a"] * 30 + ["b"] * 30)
    kept = learner.remembered()
    assert kept is not None
    before = learner.recall(kept)
    new = rng.normal((0, 4), 1.0, size=(30, 2))
    compared = update_and_compare(learner, new, np.array(["c"] * 30))
    changes = {change.label: change for change in compared}
    assert list(changes) == ["a", "b", "c"]
    after = learner.predict(kept.X)
    for label in "ab":
        of = kept.y == label
        expected = Score(20, (before[of] == label).mean(), (after[of] == label).mean())
        assert changes[label].memory == pytest.approx(expected)
        assert changes[label].held_out.n == 0
        assert changes[label].score == changes[label].memory
    assert (changes["c"].memory.n, math.isnan(changes["c"].memory.before)) == (13, True)
    assert math.isnan(changes["c"].loss)


def test_held_out_instances_decide_where_there_are_any() -> None:
    assert change("a", 1.0, 0.5).loss == 0.5
    assert ClassChange("a", held_out=NONE, memory=Score(9, 0.9, 0.8)).loss == pytest.approx(0.1)
    new = ClassChange("new", held_out=NONE, memory=Score(9, math.nan, 0.1))
    assert mean_loss([change("a", 1.0, 0.8), change("b", 0.9, 0.9), new]) == pytest.approx(0.1)
    assert math.isnan(mean_loss([new]))


@pytest.mark.parametrize(
    ("losses", "tolerance", "refused"),
    [
        ([0.05, 0.05], 0.05, False),
        ([0.10, 0.05], 0.05, True),  # on average
        ([0.15, -0.10], 0.05, False),
        ([0.20, -0.20], 0.05, True),  # one alone
        ([0.0, 0.0], 0.0, False),
        ([0.05, -0.05], 0.0, True),
        ([-0.5, -0.5], 0.0, False),
        ([1.0, 1.0], 1.0, False),
        ([], 0.05, False),
    ],
)
def test_an_update_that_costs_too_much_is_explained(
    losses: list[float], tolerance: float, refused: bool
) -> None:
    changes = [change(str(i), 0.5, 0.5 - loss) for i, loss in enumerate(losses)]
    assert (explain_refusal(changes, tolerance) is not None) == refused
