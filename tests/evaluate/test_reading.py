"""Known and novel by the learner and by the plan."""

from __future__ import annotations

import math

import numpy as np

from cilf.core import Detection, Window
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.reading import Reading, read_twice, undefined_scores

# The class c started earlier and was missed; d starts in this window.
WINDOW = Window(2, np.zeros((5, 1)), np.array(["a", "b", "c", "d", "d"]), ("d",), ("a", "b", "c"))
LABEL = np.array(["a", "b", "a", "a", "b"])


def detection(*cluster: int) -> Detection:
    clusters = np.array(cluster)
    novelty = np.array([0.1, 0.2, 0.8, 0.9, 0.7], dtype=np.float32)
    n_novel = int(clusters.max()) + 1
    return Detection(novelty, LABEL, clusters, n_novel, {}, np.zeros((5, 1), np.float32))


def test_a_class_that_was_missed_is_novel_by_the_learner_and_known_by_the_plan() -> None:
    reading = Reading(WINDOW, detection(-1, -1, 0, 1, 1), LABEL, ["a", "b"], ["c", "d"])
    by_learner, by_plan = read_twice(reading)
    assert by_learner.is_novel.tolist() == [False, False, True, True, True]
    assert by_plan.is_novel.tolist() == [False, False, False, True, True]
    right = by_learner.predicted == by_learner.truth
    assert right.all()  # found late is found, by the learner
    right = by_plan.predicted == by_plan.truth
    assert right.tolist() == [True, True, False, True, True]  # and too late, by the plan
    assert reading.matched() == {0: "c", 1: "d"}


def test_both_readings_agree_while_nothing_was_missed() -> None:
    window = Window(1, WINDOW.X, WINDOW.y, ("c", "d"), ("a", "b"))
    reading = Reading(window, detection(-1, 0, 0, 1, -1), LABEL, ["a", "b"], ["c", "d"])
    by_learner, by_plan = read_twice(reading)
    assert by_learner.n_known == by_plan.n_known == 2
    assert np.array_equal(by_learner.truth, by_plan.truth)
    assert np.array_equal(by_learner.predicted, by_plan.predicted)


def test_scores_of_no_detection_are_undefined() -> None:
    scores = undefined_scores()
    assert {name for name, metric in METRICS.items() if metric.of_window} == set(scores)
    assert all(math.isnan(value) for value in scores.values())
