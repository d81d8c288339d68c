"""What the checks of ``checks/behaviour.py`` catch."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed

from .toy import Toy, name_cases


class GuessesNovelty(Toy):
    def _novelty(self, X):
        return np.random.default_rng(0).random(len(X))


class NeverLearns(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[len(self._classes) :] = 1e6


class Forgets(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[: len(self._classes)] = 1e6


class StaysSurprised(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._first = self._sums / self._counts[:, None]

    def _novelty(self, X):
        return np.linalg.norm(self._embed(X)[:, None] - self._first, axis=2).min(1)


BROKEN: dict[str, list[type[Toy]]] = {
    "novel_looks_novel": [GuessesNovelty],
    "new_class_is_recognised": [NeverLearns],
    "old_classes_are_kept": [Forgets],
    "learned_class_looks_less_novel": [StaysSurprised],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
