"""Exact comparison of the states and the results of learners."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from cilf.checks.check import require
from cilf.core import Detection
from cilf.learners.base import Learner

State = dict[str, Any]


def state_of(learner: Learner) -> State:
    """The state of a fitted learner as plain values."""
    arrays, plain = learner._get_state()
    about = learner._describe()
    del about["parameters"]  # not learned
    return {
        "arrays": {name: _bytes(array) for name, array in arrays.items()},
        "plain": json.dumps(plain, sort_keys=True),
        "about": json.dumps(about, sort_keys=True),
    }


def require_same_state(before: State, learner: Learner, when: str) -> None:
    """Fail unless the learner still has the state ``before``."""
    after = state_of(learner)
    changed = [part for part in before if before[part] != after[part]]
    require(not changed, f"the learner's state ({', '.join(changed)}) was changed by {when}")


def require_same_detection(one: Detection, other: Detection, when: str) -> None:
    """Fail unless two detections are exactly equal."""
    for name in ("novelty", "label", "cluster", "n_novel", "embedding", "novelty_p"):
        same = _bytes(getattr(one, name)) == _bytes(getattr(other, name))
        require(same, f"detect gives another {name} {when}")
    same = dict(one.count_probability) == dict(other.count_probability)
    require(same, f"detect gives another count_probability {when}")


def require_same(one: Any, other: Any, what: str) -> None:
    """Fail unless two arrays are exactly equal."""
    require(_bytes(one) == _bytes(other), f"{what} gives something else")


def _bytes(value: Any) -> tuple[str, tuple[int, ...], bytes]:
    """A value in a form in which NaN equals NaN."""
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


@contextmanager
def disturbed_generators(seed: int) -> Iterator[None]:
    """Seed the global generators inside the block, and restore them after it."""
    before = np.random.get_state(), torch.get_rng_state(), random.getstate()  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        np.random.standard_normal()  # noqa: NPY002 - leaves half a pair behind, part of the state
        torch.manual_seed(seed)
        random.seed(seed)
        yield
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        torch.set_rng_state(before[1])
        random.setstate(before[2])


def generator_states() -> dict[str, Any]:
    """The state of each global generator."""
    numpy_state: dict[str, Any] = dict(np.random.get_state(legacy=False))  # noqa: NPY002
    position = numpy_state.pop("state")
    return {
        "numpy": (numpy_state, position["pos"], position["key"].tolist()),
        "torch": torch.get_rng_state().tolist(),
        "Python": random.getstate(),
    }
