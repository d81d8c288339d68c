"""The person who is asked for names: answers what is asked, and nothing else."""

from __future__ import annotations

import math

import numpy as np

from cilf.core import Detection, Window
from cilf.core.random import generator
from cilf.core.types import Array, Ints


class Oracle:
    """Knows the true labels of one window and hands out those that are asked for."""

    def __init__(self, window: Window) -> None:
        self._truth = window.y
        self.n_answered = 0

    def answer(self, rows: Ints) -> Array:
        """The true labels of these instances."""
        self.n_answered += len(rows)
        return self._truth[rows]


def choose_queries(detection: Detection, share: float, *, seed: int, window: int) -> Ints:
    """A random share of the instances believed novel (at least one, if any and share > 0)."""
    novel = np.flatnonzero(detection.is_novel)
    wanted = math.ceil(share * len(novel) - 1e-9)
    return np.sort(generator(seed, "query", window).permutation(novel)[:wanted])
