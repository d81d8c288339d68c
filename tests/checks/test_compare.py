"""What the exact comparisons of the checks tell apart."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from cilf.checks.compare import (
    disturbed_generators,
    generator_states,
    require_same,
    require_same_detection,
    require_same_state,
    state_of,
)
from cilf.checks.data import task

from .toy import Toy


def test_arrays_are_compared_with_nan_and_dtype() -> None:
    values = np.array([1.0, np.nan])
    require_same(values, values.copy(), "here")
    for other in (np.array([1.0, 2.0]), values.astype(np.float32), values[:1]):
        with pytest.raises(AssertionError):
            require_same(values, other, "here")


def test_detections_are_compared_in_every_array() -> None:
    data = task()
    found = Toy().fit(*data.initial).detect(data.window.X)
    require_same_detection(found, replace(found, novelty=found.novelty.copy()), "here")
    with pytest.raises(AssertionError, match="novelty"):
        require_same_detection(found, replace(found, novelty=found.novelty + 1), "here")
    with pytest.raises(AssertionError, match="novelty_p"):
        require_same_detection(found, replace(found, novelty_p=found.novelty_p / 2), "here")
    with pytest.raises(AssertionError, match="count_probability"):
        require_same_detection(found, replace(found, count_probability={9: 1.0}), "here")


def test_an_update_changes_the_state() -> None:
    data = task()
    learner = Toy().fit(*data.initial)
    before = state_of(learner)
    require_same_state(before, learner, "nothing")
    learner.update(*data.answers)
    with pytest.raises(AssertionError, match="changed by update"):
        require_same_state(before, learner, "update")


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("numpy", np.random.random),
        ("torch", lambda: torch.rand(1)),
        ("Python", random.random),
    ],
)
def test_generators_are_restored_after_the_block(name: str, draw) -> None:
    before = generator_states()
    with disturbed_generators(7):
        inside = generator_states()
        draw()
        moved = [key for key, state in generator_states().items() if state != inside[key]]
    assert moved == [name]
    assert generator_states() == before
