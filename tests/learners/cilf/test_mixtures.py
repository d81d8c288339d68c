"""Known classes in any mixture are not novel, and a novel class beside them is.

The digits are shuffled first. They come writer by writer, and writers that no labelled instance is
by are another population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cilf import CILF
from cilf.core.types import Array, Bools

KNOWN, NOVEL = (0, 1, 2, 3, 4, 5), (6, 7, 8, 9)
N_LABELLED = 80  # of each known class
N_NOVEL = 20
N_TRIALS = 10  # windows of one trial share a learner, and its bad luck
SIZES = (1, 3, 10, 30, 60, 400)  # of windows; the last is more than there are


class Outcome(NamedTuple):
    """What was found in one window."""

    n_novel: int
    is_novel: Bools


class Trial(NamedTuple):
    """A learner, and the instances of each class in an order of their own."""

    learner: CILF
    instances: list[Array]  # the first of known classes have labels
    rng: np.random.Generator

    def draw(self, label: int, n: int, *, labelled: bool = False) -> Array:
        """Some instances of a class that the learner was trained on, or fresh ones."""
        X = self.instances[label]
        if label in KNOWN:
            X = X[:N_LABELLED] if labelled else X[N_LABELLED:]
        return X[self.rng.permutation(len(X))[:n]]

    def detect(self, window: Array) -> Outcome:
        found = self.learner.detect(window)
        return Outcome(found.n_novel, found.is_novel)


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return [make_trial(seed) for seed in range(N_TRIALS)]


def make_trial(seed: int) -> Trial:
    digits, rng = load_digits(), np.random.default_rng(seed)
    images = digits.images.astype(np.float32)
    instances = [rng.permutation(images[digits.target == label]) for label in range(10)]
    X = np.concatenate([instances[label][:N_LABELLED] for label in KNOWN])
    return Trial(CILF(seed=seed).fit(X, np.repeat(KNOWN, N_LABELLED)), instances, rng)


def draw_mixture(trial: Trial, n: int, weights: Sequence[float], *, labelled: bool) -> Array:
    """A window of known classes in these proportions, as far as there are enough instances."""
    classes = trial.rng.permutation(KNOWN)[: len(weights)]
    sizes = np.ceil(n * np.array(weights) / sum(weights)).astype(int)
    drawn = [trial.draw(c, size, labelled=labelled) for c, size in zip(classes, sizes, strict=True)]
    return np.concatenate(drawn)[:n]


MIXTURES: dict[str, tuple[float, ...]] = {
    "one class": (1,),
    "two classes": (1, 1),
    "tenfold apart": (10, 1, 10, 1),
    "hundredfold apart": (100, 1),
    "all classes": (1, 1, 1, 1, 1, 1),
}


def detect_mixtures(trials: list[Trial], *, labelled: bool) -> list[Outcome]:
    """Every mixture in every other size, one half of the sizes after the other."""
    return [
        trial.detect(draw_mixture(trial, n, weights, labelled=labelled))
        for i, trial in enumerate(trials)
        for weights in MIXTURES.values()
        for n in SIZES[i % 2 :: 2]
    ]


def test_no_mixture_of_fresh_known_instances_is_novel(trials: list[Trial]) -> None:
    outcomes = detect_mixtures(trials, labelled=False)
    assert len(outcomes) == 150
    assert np.mean([outcome.n_novel > 0 for outcome in outcomes]) <= 0.05
    assert np.concatenate([outcome.is_novel for outcome in outcomes]).mean() <= 0.05


def test_no_mixture_of_training_instances_is_novel(trials: list[Trial]) -> None:
    outcomes = detect_mixtures(trials[:4], labelled=True)
    assert len(outcomes) == 60
    assert np.mean([outcome.n_novel > 0 for outcome in outcomes]) <= 0.05


def detect_novel_class(trial: Trial, novel: int, known: int) -> Bools:
    """Whether each of 20 novel instances is found beside 60 to 100 of one known class."""
    beside = trial.draw(known, int(trial.rng.integers(60, 101)))
    window = np.concatenate([beside, trial.draw(novel, N_NOVEL)])
    return trial.detect(window).is_novel[len(beside) :]


def test_a_small_novel_class_beside_one_known_class_is_found(trials: list[Trial]) -> None:
    found = [
        detect_novel_class(trial, novel, known)
        for trial in trials
        for novel, known in zip(NOVEL, trial.rng.permutation(KNOWN), strict=False)
    ]
    assert len(found) == 40
    assert np.mean([is_novel.mean() >= 0.5 for is_novel in found]) >= 0.9
