"""Checks of small and extreme inputs that real streams contain."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone

from cilf.checks.check import check, require
from cilf.checks.data import LATER, NOVEL, forms, task
from cilf.checks.output import require_well_formed
from cilf.checks.trial import fit_copy
from cilf.learners.base import Learner


@check
def check_read_only_inputs(learner: Learner) -> None:
    """Read-only arrays, such as memory maps, are accepted without a warning."""
    data = task()
    for array in (array for part in data for array in part):
        array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        learner = clone(learner).fit(*data.initial).update(*data.answers)
        learner.detect(data.window.X, n_novel=0)
        learner.predict(data.fresh.X)
        learner.embed(data.fresh.X)


@check
def check_window_of_one(learner: Learner) -> None:
    """A window may hold a single instance, known or novel."""
    learner = fit_copy(learner)
    data = task()
    require_well_formed(learner.detect(data.answers.X[:1]), 1)
    require_well_formed(learner.detect(data.initial.X[:1], n_novel=1), 1)


@check
def check_window_of_novel_instances(learner: Learner) -> None:
    """A window may hold novel instances only."""
    X = task().answers.X
    require_well_formed(fit_copy(learner).detect(X), len(X))


@check
def check_window_of_equal_instances(learner: Learner) -> None:
    """A window may hold one instance many times. It is still split into ``n_novel`` clusters."""
    X = np.repeat(task().answers.X[:1], 6, axis=0)
    found = fit_copy(learner).detect(X, n_novel=2)
    require_well_formed(found, len(X))
    require(found.n_novel == 2, f"n_novel is {found.n_novel}, 2 was given")


@check
def check_class_of_two_instances(learner: Learner) -> None:
    """A class may come with two instances, at fit and at update."""
    data = task()
    X = np.concatenate([data.initial.X, data.later.X[:2]])
    y = np.concatenate([data.initial.y, data.later.y[:2]])
    learner = clone(learner).fit(X, y).update(data.answers.X[:2], data.answers.y[:2])
    require(len(learner.classes_) == 5, f"classes_ is {learner.classes_.tolist()}")
    require_well_formed(learner.detect(data.window.X, n_novel=1), len(data.window.X))


@check
def check_update_with_known_classes(learner: Learner) -> None:
    """An update may bring known classes only, in any number."""
    data = task()
    learner = fit_copy(learner)
    known = learner.classes_.tolist()
    learner.update(data.initial.X[:1], data.initial.y[:1]).update(*data.initial)
    seen = learner.classes_.tolist()
    require(seen == known, f"classes_ became {seen} by an update with known classes only")
    require_well_formed(learner.detect(data.window.X, n_novel=1), len(data.window.X))


@check
def check_update_with_undetected_class(learner: Learner) -> None:
    """An update may bring a class that was in no window."""
    data = task()
    X = np.concatenate([data.answers.X, data.later.X, data.initial.X[:5]])
    y = np.concatenate([data.answers.y, data.later.y, data.initial.y[:5]])
    learner = fit_copy(learner).update(X, y)
    missing = {NOVEL, LATER} - set(learner.predict(X).tolist())
    require(not missing, f"classes {sorted(missing)} were learned, and are never predicted")


@check
def check_constant_features(learner: Learner) -> None:
    """Features that never vary, such as the borders of images, do no harm."""
    for form in forms(learner):
        data = task(form)
        for X in (data.initial.X, data.window.X):
            X[:, :2] = 7
        found = clone(learner).fit(*data.initial).detect(data.window.X, n_novel=1)
        require_well_formed(found, len(data.window.X))
