"""What tests of several learners share: digits, and what a learner keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cilf.core.types import Array
from cilf.learners import Learner


class Labelled(NamedTuple):
    """Instances and the names of their classes."""

    X: Array
    y: Array

    @property
    def counts(self) -> list[int]:
        """Number of instances of each class."""
        return np.unique(self.y, return_counts=True)[1].tolist()


@pytest.fixture(scope="session")
def digits() -> Callable[[tuple[int, ...], int, int], tuple[Array, Array]]:
    """Images of some digits: from the first to the last of each class, in turn."""
    raw = load_digits()

    def read(classes: tuple[int, ...], first: int, last: int) -> tuple[Array, Array]:
        rows = np.stack([np.flatnonzero(raw.target == label)[first:last] for label in classes], 1)
        rows = rows.ravel()
        return np.round(raw.images[rows] * (255 / 16)).astype(np.uint8), raw.target[rows]

    return read


@pytest.fixture(scope="session")
def held_out() -> Callable[[Learner], Labelled]:
    """The instances that a learner keeps out of training."""

    def read(learner: Learner) -> Labelled:
        kept = learner.remembered()
        assert kept is not None
        return Labelled(kept.X[kept.held_out], kept.y[kept.held_out])

    return read


@pytest.fixture(scope="session")
def memory() -> Callable[[Learner], Labelled]:
    """The instances that a learner keeps to train on again."""

    def read(learner: Learner) -> Labelled:
        kept = learner.remembered()
        assert kept is not None
        return Labelled(kept.X[~kept.held_out], kept.y[~kept.held_out])

    return read
