"""Never: a classifier that calls nothing novel and learns nothing, the floor of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cilf.core import Detection
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.classifier import ClassifierLearner

NOTHING_FOUND = "it calls nothing novel, whatever number is given"
NOTHING_LEARNED = "it learns nothing after the first fit"


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class Never(ClassifierLearner):
    """A plain classifier of the first classes, which calls no instance novel.

    An update changes nothing but ``classes_``. The novelty of an instance, 1 - the largest softmax
    probability, ranks instances and decides nothing. What does not score more than this learner has
    found no novel class.

    Parameters
    ----------
    memory_size : int, default=2000
        Largest number of labelled instances that are kept. No update trains on them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
    >>> learner = Never(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.detect(X).n_novel
    0
    >>> "c" in learner.update(X[60:], ["c"] * 30).predict(X).tolist()
    False
    """

    name: ClassVar[str] = "never"
    expected_failures: ClassVar[Mapping[str, str]] = {
        "n_novel_is_respected": NOTHING_FOUND,
        "window_of_equal_instances": NOTHING_FOUND,
        "update_with_undetected_class": NOTHING_LEARNED,
        "new_class_is_recognised": NOTHING_LEARNED,
        "learned_class_looks_less_novel": NOTHING_LEARNED,
    }

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        window = self._score_window(X)
        return Detection(
            novelty=window.novelty.astype(np.float32),
            label=self.classes_[window.label],
            cluster=np.full(len(X), -1, dtype=np.int64),
            n_novel=0,
            curve={},
            embedding=window.points,
        )

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        """Learn nothing."""
