"""One learner's life, watched from outside: what it said, and what it touched on the way.

A life takes the dear calls (two detections), so most checks look at one that is kept.
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
class Life:
    """Fit, detect, update, detect again, embed, predict."""

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
_lives: WeakKeyDictionary[Learner, dict[Key, Life]] = WeakKeyDictionary()


def fitted(learner: Learner, form: str = "images") -> Learner:
    """A fitted copy to do anything with; the fit itself happens once for each learner."""
    kept, key = _fitted.setdefault(learner, {}), (form, repr(learner))
    if key not in kept:
        kept[key] = clone(learner).fit(*task(form).initial)
    return copy.deepcopy(kept[key])


def life(learner: Learner, form: str = "images") -> Life:
    """The life of a clone, lived once for each learner."""
    kept, key = _lives.setdefault(learner, {}), (form, repr(learner))
    if key not in kept:
        kept[key] = live(learner, task(form), generators=987654321)
    return kept[key]


def live(learner: Learner, data: Task, *, generators: int) -> Life:
    """The life of a clone, on this data, with the global generators set to this seed."""
    learner = clone(learner)
    given = learner.get_params()
    looks, untouched = repr(given), copy.deepcopy(data)
    with disturbed_generators(generators):
        before = generator_states()
        found = learner.fit(*data.initial).detect(data.window.X)
        classes = [learner.classes_, learner.update(*data.answers).classes_]
        found_later = learner.detect(data.fresh.X)
        learner.embed(data.fresh.X)
        predicted = learner.predict(data.fresh.X)
        after = generator_states()
    return Life(
        found=found,
        found_later=found_later,
        predicted=predicted,
        classes=classes,
        state=state_of(learner),
        changed_inputs=_changed_inputs(untouched, data),
        changed_parameters=_changed_parameters(given, looks, learner.get_params()),
        moved_generators=[name for name in before if before[name] != after[name]],
    )


def _changed_inputs(before: Task, after: Task) -> list[str]:
    pairs = zip(_arrays(before), _arrays(after), strict=True)
    return [name for (name, old), (_, new) in pairs if not np.array_equal(old, new)]


def _arrays(data: Task) -> Iterable[tuple[str, Array]]:
    for part in Task._fields:
        yield f"X of {part}", getattr(data, part).X
        yield f"y of {part}", getattr(data, part).y


def _changed_parameters(given: dict[str, Any], looks: str, after: dict[str, Any]) -> list[str]:
    replaced = [name for name, value in after.items() if value is not given[name]]
    mutated = not replaced and repr(after) != looks
    return ["one that is mutable"] if mutated else replaced
