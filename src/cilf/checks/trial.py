"""A trial of a learner: its results, and what its methods changed.

A trial makes the expensive calls, so that most checks share one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone

from cilf.checks.compare import State, disturbed_generators, generator_states, state_of
from cilf.checks.data import Task, task
from cilf.core import Detection
from cilf.core.types import Array
from cilf.learners.base import Learner


@dataclass(frozen=True)
class Trial:
    """The results of fit, detect, update, detect, embed and predict."""

    found: Detection  # in the window, before the update
    found_later: Detection  # among the fresh instances, after it
    predicted: Array  # of the fresh instances
    classes: list[Array]  # before the update, and after it
    state: State  # in the end
    changed_inputs: list[str]
    changed_parameters: list[str]
    moved_generators: list[str]


Key = tuple[str, str]  # form of the input, and the learner's parameters: those may be changed

_fitted: WeakKeyDictionary[Learner, dict[Key, Learner]] = WeakKeyDictionary()
_trials: WeakKeyDictionary[Learner, dict[Key, Trial]] = WeakKeyDictionary()


def fit_copy(learner: Learner, form: str = "images") -> Learner:
    """A fitted copy that a check may change; each learner is fitted only once."""
    kept, key = _fitted.setdefault(learner, {}), (form, repr(learner))
    if key not in kept:
        kept[key] = clone(learner).fit(*task(form).initial)
    return copy.deepcopy(kept[key])


def keep_trial(learner: Learner, form: str = "images") -> Trial:
    """The trial of a clone, which is run once for each learner."""
    kept, key = _trials.setdefault(learner, {}), (form, repr(learner))
    if key not in kept:
        kept[key] = run_trial(learner, task(form), generators=987654321)
    return kept[key]


def run_trial(learner: Learner, data: Task, *, generators: int) -> Trial:
    """Run the trial of a clone on this data, with the global generators set to this seed."""
    learner = clone(learner)
    given = learner.get_params()
    shown, untouched = repr(given), copy.deepcopy(data)
    with disturbed_generators(generators):
        before = generator_states()
        found = learner.fit(*data.initial).detect(data.window.X)
        classes = [learner.classes_, learner.update(*data.answers).classes_]
        found_later = learner.detect(data.fresh.X)
        learner.embed(data.fresh.X)
        predicted = learner.predict(data.fresh.X)
        after = generator_states()
    return Trial(
        found=found,
        found_later=found_later,
        predicted=predicted,
        classes=classes,
        state=state_of(learner),
        changed_inputs=_changed_inputs(untouched, data),
        changed_parameters=_changed_parameters(given, shown, learner.get_params()),
        moved_generators=[name for name in before if before[name] != after[name]],
    )


def _changed_inputs(before: Task, after: Task) -> list[str]:
    pairs = zip(_arrays(before), _arrays(after), strict=True)
    return [name for (name, old), (_, new) in pairs if not np.array_equal(old, new)]


def _arrays(data: Task) -> Iterable[tuple[str, Array]]:
    for part in Task._fields:
        yield f"X of {part}", getattr(data, part).X
        yield f"y of {part}", getattr(data, part).y


def _changed_parameters(given: dict[str, Any], shown: str, after: dict[str, Any]) -> list[str]:
    replaced = [name for name, value in after.items() if value is not given[name]]
    mutated = not replaced and repr(after) != shown
    return ["one that is mutable"] if mutated else replaced
