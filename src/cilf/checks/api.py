"""Checks of the interface: a learner behaves as scikit-learn's estimators do."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import clone

from cilf.checks.check import check, require
from cilf.checks.compare import require_same_state, state_of
from cilf.checks.data import task
from cilf.checks.trial import fit_copy, keep_trial
from cilf.errors import NotFitted
from cilf.learners.base import Learner


@check
def check_constructor_signature(learner: Learner) -> None:
    """Every constructor parameter is named, keyword-only and has a default; `seed` is one."""
    parameters = inspect.signature(type(learner)).parameters
    for name, parameter in parameters.items():
        keyword_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        require(keyword_only, f"constructor parameter {name!r} is not a keyword-only one")
        has_default = parameter.default is not inspect.Parameter.empty
        require(has_default, f"constructor parameter {name!r} has no default")
    require("seed" in parameters, "the constructor has no parameter 'seed'")


@check
def check_init_only_stores(learner: Learner) -> None:
    """The constructor stores the very objects it is given, computes nothing and checks nothing."""
    given = {name: object() for name in type(learner).parameter_names()}
    stored = vars(type(learner)(**given))
    for name, value in given.items():
        require(stored.get(name) is value, f"the constructor did not store {name!r} as given")
    extra = sorted(set(stored) - set(given))
    require(not extra, f"the constructor also sets {extra}")


@check
def check_parameters_stay(learner: Learner) -> None:
    """fit, detect and update leave every parameter as it was given."""
    changed = keep_trial(learner).changed_parameters
    require(not changed, f"parameters were changed: {', '.join(changed)}")


@check
def check_clone_is_fresh(learner: Learner) -> None:
    """A clone of a fitted learner has its parameters and is not fitted."""
    original = fit_copy(learner)
    copied = clone(original)
    require(type(copied) is type(original), f"the clone is a {type(copied).__name__}")
    same = repr(copied.get_params()) == repr(original.get_params())
    require(same, f"the clone has other parameters: {copied!r}")
    require(_says_not_fitted(lambda: copied.classes_), "the clone of a fitted learner is fitted")


@check
def check_not_fitted(learner: Learner) -> None:
    """Before fit, every public method raises NotFitted, and save leaves nothing behind."""
    learner = clone(learner)
    X, y = task().answers
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        calls: dict[str, Callable[[], Any]] = {
            "predict": lambda: learner.predict(X),
            "embed": lambda: learner.embed(X),
            "detect": lambda: learner.detect(X),
            "update": lambda: learner.update(X, y),
            "rename": lambda: learner.rename({y[0]: "other"}),
            "save": lambda: learner.save(model),
            "classes_": lambda: learner.classes_,
        }
        for name, call in calls.items():
            require(_says_not_fitted(call), f"{name} of an unfitted learner raises no NotFitted")
        require(not model.exists(), "save of an unfitted learner makes a folder")


def _says_not_fitted(call: Callable[[], Any]) -> bool:
    try:
        call()
    except NotFitted:
        return True
    return False


@check
def check_fit_and_update_return_self(learner: Learner) -> None:
    """fit and update give back the learner itself, so that calls can be chained."""
    learner = clone(learner)
    data = task()
    require(learner.fit(*data.initial) is learner, "fit does not return the learner")
    require(learner.update(*data.answers) is learner, "update does not return the learner")


@check
def check_fit_starts_afresh(learner: Learner) -> None:
    """A second fit forgets the first and every update since."""
    data = task()
    once = fit_copy(learner)
    again = fit_copy(learner).update(*data.answers).fit(*data.initial)
    require_same_state(state_of(once), again, "an earlier fit and update")
