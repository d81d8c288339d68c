"""Checks of state: only fit, update and rename change a learner, in a repeatable way."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from cilf.checks.check import check, require
from cilf.checks.compare import (
    require_same,
    require_same_detection,
    require_same_state,
    state_of,
)
from cilf.checks.data import forms, task
from cilf.checks.trial import fit_copy, keep_trial, run_trial
from cilf.core.types import Array
from cilf.errors import BadInput
from cilf.learners import load
from cilf.learners.base import Learner

N_UPDATES = 12
MEMORY_SIZE = 30


@check
def check_detect_is_pure(learner: Learner) -> None:
    """detect, predict and embed leave the learner as it was."""
    learner = fit_copy(learner)
    data = task()
    before, predicted = state_of(learner), learner.predict(data.fresh.X)
    learner.detect(data.window.X)
    require_same_state(before, learner, "predict or detect")
    learner.embed(data.window.X)
    require_same_state(before, learner, "embed")
    require_same(learner.predict(data.fresh.X), predicted, "predict after detect")


@check
def check_inputs_stay(learner: Learner) -> None:
    """No method writes into the arrays it is handed."""
    for form in forms(learner):
        changed = keep_trial(learner, form).changed_inputs
        require(not changed, f"{', '.join(changed)} was changed ({form})")


@check
def check_generators_untouched(learner: Learner) -> None:
    """No method changes the state of the global random generators."""
    moved = keep_trial(learner).moved_generators
    require(not moved, f"the global generator of {' and '.join(moved)} was moved")


@check
def check_same_seed_same_result(learner: Learner) -> None:
    """Two learners with one seed give equal results for any state of the global generators."""
    one, other = keep_trial(learner), run_trial(learner, task(), generators=54321)
    require_same_detection(one.found, other.found, "the second time, with the same seed")
    require_same(one.predicted, other.predicted, "predict with the same seed")
    require(one.state == other.state, "the same seed leads to another state")


@check
def check_inputs_not_aliased(learner: Learner) -> None:
    """A change of X or y after fit or update does not change the learner."""
    data = task()
    learner = clone(learner)
    learner.fit(*data.initial)
    learner.update(*data.answers)
    before, predicted = state_of(learner), learner.predict(data.fresh.X)
    for array in (*data.initial, *data.answers):
        array[...] = 1
    require_same_state(before, learner, "writing into X and y after fit or update")
    require_same(learner.predict(data.fresh.X), predicted, "predict after X and y were changed")


@check
def check_saved_goes_on_the_same(learner: Learner) -> None:
    """A loaded learner detects, learns and predicts exactly as the saved one does."""
    for form in forms(learner):
        data = task(form)
        saved = fit_copy(learner, form).update(*data.answers)
        loaded = save_and_load(saved)
        require(repr(loaded) == repr(saved), f"{saved!r} was saved, {loaded!r} was loaded")
        require_same_state(state_of(saved), loaded, f"saving and loading ({form})")
        for each in (saved, loaded):
            each.update(*data.later)
        found, found_loaded = (each.detect(data.window.X, n_novel=1) for each in (saved, loaded))
        require_same_detection(found, found_loaded, f"after loading ({form})")
        predicted, predicted_loaded = (each.predict(data.fresh.X) for each in (saved, loaded))
        require_same(predicted, predicted_loaded, f"predict after loading ({form})")
        require_same_state(state_of(saved), loaded, f"going on after loading ({form})")


def save_and_load(learner: Learner) -> Learner:
    """Save the learner and load it again. Parameters that are functions are passed to ``load``."""
    own = {name: value for name, value in learner.get_params().items() if callable(value)}
    with tempfile.TemporaryDirectory() as folder:
        learner.save(folder)
        return load(folder, learner=type(learner), **own)


@check
def check_rename_changes_names_only(learner: Learner) -> None:
    """rename returns self and changes the names of classes only, also after a save."""
    data = task()
    plain, renamed = fit_copy(learner), fit_copy(learner)
    other = {label: label + 100 for label in plain.classes_.tolist()[1:]}
    require(renamed.rename(other) is renamed, "rename does not return the learner")
    renamed = save_and_load(renamed)
    for each in (plain, renamed):
        each.update(*data.answers)
    expected = _rename(plain.classes_, other)
    require_same(renamed.classes_, expected, "classes_ after rename")
    predicted = _rename(plain.predict(data.fresh.X), other)
    require_same(renamed.predict(data.fresh.X), predicted, "predict after rename")
    before, after = (each.detect(data.fresh.X) for each in (plain, renamed))
    changed = dataclasses.replace(before, label=_rename(before.label, other))
    require_same_detection(changed, after, "after rename")


def _rename(labels: Array, names: dict[int, int]) -> Array:
    return np.array([names.get(label, label) for label in labels.tolist()])


@check
def check_memory_is_bounded(learner: Learner) -> None:
    """The state stops growing under updates with known classes."""
    learner = clone(learner)
    if "memory_size" in learner.parameter_names():
        learner.set_params(memory_size=MEMORY_SIZE)
    X, y = task().initial
    learner.fit(X, y)
    sizes = [_size(learner.update(X[:30], y[:30])) for _ in range(N_UPDATES)]
    half = N_UPDATES // 2
    grows = max(sizes[half:]) > max(sizes[:half])
    require(not grows, f"the state grows with every update of known classes: {sizes} bytes")


def _size(learner: Learner) -> int:
    return sum(array.nbytes for array in learner._get_state()[0].values())


@check
def check_bad_input_is_refused(learner: Learner) -> None:
    """Input that cannot be used raises BadInput, and the message names the argument."""
    learner = fit_copy(learner)
    for what, argument, call in bad_calls(learner):
        try:
            call()
        except BadInput as error:
            named = re.search(rf"\b{argument}\b", str(error)) is not None
            require(named, f"{what}: the message does not name {argument}: {error}")
        else:
            require(False, f"{what}: accepted")


@check
def check_bad_input_changes_nothing(learner: Learner) -> None:
    """Input that is refused leaves the learner as it was."""
    learner = fit_copy(learner)
    data = task()
    before, predicted = state_of(learner), learner.predict(data.fresh.X)
    for what, _, call in bad_calls(learner):
        with suppress(Exception):
            call()
        require_same_state(before, learner, f"a bad call ({what})")
    require_same(learner.predict(data.fresh.X), predicted, "predict after bad calls")


BadCall = tuple[str, str, Callable[[], Any]]  # what is bad, the argument, the call


def bad_calls(learner: Learner) -> Iterator[BadCall]:
    """Calls of a fitted learner that it must refuse."""
    X, y = task().initial
    for what, bad in _bad_instances(X).items():
        labels = y[: len(bad)]
        yield f"fit, {what}", "X", partial(learner.fit, bad, labels)
        yield f"update, {what}", "X", partial(learner.update, bad, labels)
        for method in (learner.predict, learner.embed, learner.detect):
            yield f"{method.__name__}, {what}", "X", partial(method, bad)
    narrow = X[:, :, :-1]
    yield "update, wrong width", "X", partial(learner.update, narrow, y)
    for method in (learner.predict, learner.embed, learner.detect):
        yield f"{method.__name__}, wrong width", "X", partial(method, narrow)
    for what, labels in _bad_labels(y).items():
        yield f"fit, {what}", "y", partial(learner.fit, X, labels)
        yield f"update, {what}", "y", partial(learner.update, X, labels)
    if not learner.takes_vectors:
        yield "fit, vectors", "X", partial(learner.fit, X.reshape(len(X), -1), y)
    yield "fit, one class", "y", partial(learner.fit, X, np.zeros_like(y))
    yield "update, strings for ints", "y", partial(learner.update, X, y.astype(str))
    yield "detect, n_novel above the window", "n_novel", partial(learner.detect, X[:3], n_novel=4)


def _bad_instances(X: Array) -> dict[str, Any]:
    holes = X.astype(object)
    holes[0, 0, 0] = None
    return {
        "NaN": _with_value(X, np.nan),
        "infinity": _with_value(X, np.inf),
        "no instances": X[:0],
        "an object array": holes,
        "complex numbers": X.astype(complex),
        "text": X.astype(str),
        "one axis": X.ravel(),
    }


def _with_value(X: Array, value: float) -> Array:
    """``X`` as floats, with this value somewhere in its last instance."""
    spoiled = X.astype(np.float32)
    spoiled[-1, 0, 0] = value
    return spoiled


def _bad_labels(y: Array) -> dict[str, Any]:
    return {
        "one label too few": y[:-1],
        "one label too many": np.append(y, y[-1]),
        "fractions as labels": y + 0.5,
        "a missing label": [*y[:-1].tolist(), None],
    }
