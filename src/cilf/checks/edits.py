"""Checks of edits: what leaves a learner that can merge, forget and take back is gone.

A learner that is no ``EditableLearner`` offers nothing of this, and passes.
"""

from __future__ import annotations

import numpy as np

from cilf.checks.check import check, require
from cilf.checks.compare import require_same, require_same_state, state_of
from cilf.checks.data import KNOWN, task
from cilf.checks.state import save_and_load
from cilf.checks.trial import fit_copy
from cilf.core.types import Array
from cilf.learners.base import Learner
from cilf.learners.editable import EditableLearner


@check
def check_forgotten_class_is_gone(learner: Learner) -> None:
    """A class that is forgotten is neither predicted nor remembered, and can be learned again."""
    fitted = fit_copy(learner)
    if not isinstance(fitted, EditableLearner):
        return
    data, gone, before = task(), KNOWN[0], fitted.remembered()
    require(fitted.forget(gone) is fitted, "forget does not return the learner")
    _require_classes(fitted, KNOWN[1:], "forget")
    after = fitted.remembered()
    if before is not None and after is not None:
        require_same(after.y, before.y[before.y != gone], "remembered after forget")
    _require_goes_on(fitted, "forget")
    X, y = data.initial
    fitted.update(X[y == gone], y[y == gone])
    _require_classes(fitted, (*KNOWN[1:], gone), "forget and update")


@check
def check_merged_classes_are_one(learner: Learner) -> None:
    """A class that is merged into another one is called like that one, everywhere."""
    fitted = fit_copy(learner)
    if not isinstance(fitted, EditableLearner):
        return
    kept, gone, third = KNOWN
    before = fitted.remembered()
    require(fitted.merge(kept, gone) is fitted, "merge does not return the learner")
    _require_classes(fitted, (kept, third), "merge")
    after = fitted.remembered()
    if before is not None and after is not None:
        require_same(after.y, np.where(before.y == gone, kept, before.y), "remembered after merge")
    _require_goes_on(fitted, "merge")


@check
def check_retracted_labels_are_gone(learner: Learner) -> None:
    """Instances that are taken back are not remembered; the class keeps the others."""
    fitted = fit_copy(learner)
    if not isinstance(fitted, EditableLearner):
        return
    data = task()
    fitted.update(*data.answers)
    X, y = data.answers
    half = len(X) // 2
    classes = fitted.classes_
    require(fitted.retract(X[:half], y[:half]) is fitted, "retract does not return the learner")
    require_same(fitted.classes_, classes, "classes_ after retract")
    _require_goes_on(fitted, "retract")
    kept = fitted.remembered()
    if kept is None or fitted._features is not None:  # then it keeps vectors, not images
        return
    there = {instance.tobytes() for instance in kept.X}
    require(not _bytes_of(X[:half]) & there, "remembered gives instances that were taken back")
    lost = _bytes_of(X[half:]) - there
    require(len(lost) < half, "instances that were not taken back are gone, too")


def _bytes_of(X: Array) -> set[bytes]:
    return {instance.tobytes() for instance in X}


def _require_classes(learner: Learner, expected: tuple[int, ...], when: str) -> None:
    """The learner has these classes, and speaks of no other."""
    data = task()
    require_same(learner.classes_, np.array(expected), f"classes_ after {when}")
    kept = learner.remembered()
    said = {
        "predict": learner.predict(data.fresh.X),
        "detect": learner.detect(data.window.X).label,
        "remembered": np.empty(0) if kept is None else kept.y,
    }
    for what, labels in said.items():
        others = set(labels.tolist()) - set(expected)
        require(not others, f"{what} gives {sorted(others)} after {when}")


def _require_goes_on(learner: Learner, after: str) -> None:
    """The learner is the same after a save."""
    loaded = save_and_load(learner)
    require_same_state(state_of(learner), loaded, f"saving and loading after {after}")
    fresh = task().fresh.X
    require_same(loaded.predict(fresh), learner.predict(fresh), f"predict after {after} and load")
