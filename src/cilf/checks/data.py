"""Small embedded data for the checks: handwritten digits, three known classes, two novel ones.

The digits 0, 4 and 6 are known, 2 and 3 are novel. Every reasonable method solves this task. Every
call makes new arrays, so that a check may change them.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from cilf.core import Labelled
from cilf.core.types import Array, Ints
from cilf.learners.base import Learner

KNOWN = (0, 4, 6)
NOVEL, LATER = 2, 3


class Task(NamedTuple):
    """A small task: the data of a stream with two updates."""

    initial: Labelled  # known classes, to fit on
    window: Labelled  # known classes and the novel one, to detect in
    answers: Labelled  # the novel class with its labels, to update with
    later: Labelled  # one more class with its labels, for a second update
    fresh: Labelled  # known and novel classes that no method above has seen


def task(form: str = "images") -> Task:
    """The problem as (n, 8, 8) uint8 "images" or as (n, 64) float32 "vectors"."""
    return Task(
        initial=_take(form, KNOWN, 0, 30),
        window=_take(form, (*KNOWN, NOVEL), 30, 50),
        answers=_take(form, (NOVEL,), 30, 50),
        later=_take(form, (LATER,), 30, 50),
        fresh=_take(form, (*KNOWN, NOVEL), 50, 80),
    )


def forms(learner: Learner) -> list[str]:
    """The forms of input that the learner takes."""
    return ["images", "vectors"] if learner.takes_vectors else ["images"]


@cache
def _digits() -> tuple[Array, Ints]:
    raw = load_digits()
    return np.round(raw.images * (255 / 16)).astype(np.uint8), raw.target.astype(np.int64)


def _take(form: str, classes: tuple[int, ...], first: int, last: int) -> Labelled:
    """Instances ``first`` to ``last`` of each class, the classes in turns."""
    images, labels = _digits()
    of_class = [np.flatnonzero(labels == label)[first:last] for label in classes]
    rows = np.stack(of_class, axis=1).ravel()
    X, y = images[rows], labels[rows]
    return Labelled(X if form == "images" else X.reshape(len(X), -1) / np.float32(255), y)
