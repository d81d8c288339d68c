from __future__ import annotations

import math

import numpy as np
import pytest

from cilf.learners.iforest import IForest
from cilf.workflow.comparison import (
    ClassChange,
    Score,
    average_scores,
    bound_accuracy,
    explain_refusal,
    measure_loss,
    score_kept,
    select_losses,
    update_and_compare,
)

NONE = Score(0, math.nan, math.nan)


def change(label: str, before: float, after: float, n: int = 20) -> ClassChange:
    changed = round(abs(before - after) * n)
    return ClassChange(label, Score(n, before, after), Score(100, 1.0, 1.0), changed)


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


def test_what_a_model_keeps_is_scored_as_an_update_scores_it() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (0, 2)])
    learner = IForest(n_estimators=5, memory_size=40).fit(X, ["a"] * 30 + ["b"] * 30)
    before = score_kept(learner)
    changes = update_and_compare(learner, rng.normal((0, 9), 1.0, (30, 2)), np.array(["c"] * 30))
    assert [c.memory.after for c in before] == [c.memory.before for c in changes[:2]]
    assert [c.label for c in score_kept(learner)] == ["a", "b", "c"]
    assert score_kept(learner)[2].memory.after == changes[2].memory.after


def test_an_accuracy_has_bounds_if_it_was_measured() -> None:
    assert bound_accuracy(math.nan, 20) is None
    assert bound_accuracy(1.0, 0) is None
    plain = Score(20, math.nan, 1.0).to_json()
    assert (plain["before"], plain["before_interval"]) == (None, None)
    assert plain["after_interval"] == pytest.approx((0.88, 1.0), abs=0.005)


def test_the_mean_of_classes_is_as_uncertain_as_its_variance_says() -> None:
    even = average_scores([Score(20, math.nan, 0.9), Score(20, math.nan, 0.7), NONE])
    assert even is not None
    assert (even.mean, even.n) == (pytest.approx(0.8), 40)
    assert (even.low, even.high) == pytest.approx(bound_accuracy(0.8, 40))
    uneven = average_scores([Score(200, math.nan, 0.8), Score(5, math.nan, 0.8)])
    assert uneven is not None
    deviation = math.sqrt(0.8 * 0.2 * (1 / 200 + 1 / 5)) / 2
    assert uneven.high - uneven.low == pytest.approx(2 * 1.645 * deviation, rel=0.1)
    assert average_scores([NONE]) is None


def test_held_out_instances_decide_where_there_are_any() -> None:
    assert change("a", 1.0, 0.5).loss == 0.5
    assert ClassChange("a", held_out=NONE, memory=Score(9, 0.9, 0.8)).loss == pytest.approx(0.1)
    new = ClassChange("new", held_out=NONE, memory=Score(9, math.nan, 0.1))
    loss = measure_loss([change("a", 1.0, 0.8), change("b", 0.9, 0.9), new])
    assert (loss.mean, loss.n) == (pytest.approx(0.1), 40)
    assert math.isnan(measure_loss([new]).mean)


@pytest.mark.parametrize(
    ("losses", "n", "tolerance", "refused"),
    [
        ([0.10, 0.10], 20, 0.05, False),  # no more than chance does
        ([0.10, 0.10], 200, 0.05, True),  # on average
        ([0.30, -0.30], 20, 0.05, False),
        ([0.30, -0.30], 200, 0.05, True),  # one alone
        ([0.0, 0.0], 200, 0.0, False),
        ([-0.5, -0.5], 200, 0.0, False),
        ([1.0, 1.0], 200, 1.0, False),
        ([1.0, 1.0], 9, 0.05, True),
        ([], 20, 0.05, False),
    ],
)
def test_an_update_that_surely_costs_too_much_is_explained(
    losses: list[float], n: int, tolerance: float, refused: bool
) -> None:
    changes = [change(str(i), 0.5, 0.5 - loss, n) for i, loss in enumerate(losses)]
    assert (explain_refusal(changes, tolerance) is not None) == refused


def test_the_interval_of_a_loss_holds_the_true_loss_as_often_as_it_says() -> None:
    """Against a simulation: 3 classes of 20, 0.10 become wrong and 0.04 right."""
    rng, held, n = np.random.default_rng(0), 0, 1000
    for _ in range(n):
        changes = []
        for label in "abc":
            steps = rng.choice([1, -1, 0], size=20, p=[0.10, 0.04, 0.86])
            lost = float(steps.mean())
            score = Score(20, 0.8, 0.8 - lost)
            changes.append(ClassChange(label, score, NONE, int(np.abs(steps).sum())))
        low, high = measure_loss(changes).interval()
        held += low <= 0.06 <= high
    assert 0.88 <= held / n <= 0.96


def test_a_loss_that_may_be_chance_is_not_selected() -> None:
    changes = [change("few", 1.0, 0.9), change("many", 1.0, 0.9, n=200), change("fine", 1.0, 1.0)]
    assert [found.label for found in select_losses(changes, 0.05)] == ["many"]
    assert select_losses(changes, 0.2) == []


def test_a_loss_as_json() -> None:
    plain = measure_loss([change("a", 1.0, 0.8)]).to_json()
    assert plain["loss_low"] < plain["loss"] < plain["loss_high"]
    assert plain["measured_on"] == 20
    assert measure_loss([]).to_json()["loss"] is None
