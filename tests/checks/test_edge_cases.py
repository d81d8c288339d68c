"""What the checks of ``checks/edge_cases.py`` catch."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed

from .toy import Toy, changed, name_cases


class ScalesInPlace(Toy):
    def _detect(self, X, n_novel):
        X //= 1
        return super()._detect(X, n_novel)


class NeedsTwoInstances(Toy):
    def _novelty(self, X):
        with np.errstate(all="ignore"):
            novelty = super()._novelty(X)
            return novelty / (novelty.max() - novelty.min())


class NeedsKnownInstances(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        known = found.novelty[~found.is_novel]
        return changed(found, novelty=found.novelty - known.min())


class NeedsDifferentInstances(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        with np.errstate(all="ignore"):
            return changed(found, novelty=found.novelty / found.novelty.std())


class NeedsThreeInstances(Toy):
    def _fit(self, X, y):
        np.linalg.cholesky(np.diag(np.bincount(y) - 2.0))
        super()._fit(X, y)


class NeedsNewClasses(Toy):
    def _update(self, X, y, n_classes):
        np.stack([X[y == label].mean(0) for label in range(len(self._counts), n_classes)])
        super()._update(X, y, n_classes)


class LearnsOneClassAtATime(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[len(self._classes) + 1 :] = 1e6


class DividesByDeviation(Toy):
    def _fit(self, X, y):
        flat = X.reshape(len(X), -1).astype(float)
        with np.errstate(all="ignore"):
            self._scale = np.float32(1) / flat.std(0).astype(np.float32)
        super()._fit(X, y)

    def _embed(self, X):
        with np.errstate(all="ignore"):
            return super()._embed(X) * self._scale


BROKEN: dict[str, list[type[Toy]]] = {
    "read_only_inputs": [ScalesInPlace],
    "window_of_one": [NeedsTwoInstances],
    "window_of_novel_instances": [NeedsKnownInstances],
    "window_of_equal_instances": [NeedsDifferentInstances],
    "class_of_two_instances": [NeedsThreeInstances],
    "update_with_known_classes": [NeedsNewClasses],
    "update_with_undetected_class": [LearnsOneClassAtATime],
    "constant_features": [DividesByDeviation],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
