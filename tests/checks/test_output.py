"""What the checks of ``checks/output.py`` catch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.checks import CHECKS, CheckFailed
from cilf.nn.memory import Memory

from .toy import Toy, changed, name_cases


class MixesUpItsMemory(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._memory = Memory(X.copy(), y[::-1])

    def _memories(self):
        return self._memory, None


class RecallsSomethingElse(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._memory = Memory(X.copy(), y)

    def _memories(self):
        return None, self._memory

    def recall(self, kept):
        return np.repeat(self.classes_[:1], len(kept.y))


class AnswersMinusOne(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, label=np.where(found.is_novel, -1, found.label))


class AnswersPositions(Toy):
    def predict(self, X):
        super().predict(X)
        return self._predict(np.asarray(X))


class CountsClustersFromOne(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, cluster=np.where(found.is_novel, found.cluster + 1, -1))


class SaysNaN(Toy):
    def _novelty(self, X):
        return np.where(np.arange(len(X)) == 0, np.nan, super()._novelty(X))


class SaysAllAtOnce(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, novelty=found.novelty[:, None])


class CountsInNumpy(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, n_novel=np.int64(found.n_novel))


class SaysPValuesOfZero(Toy):
    def _novelty_p(self, X):
        return np.zeros(len(X), dtype=np.float32)


class SaysPValuesOfNaN(Toy):
    def _novelty_p(self, X):
        return np.full(len(X), np.nan, dtype=np.float32)


class SaysOnePValue(Toy):
    def _novelty_p(self, X):
        return np.ones(1, dtype=np.float32)


class IsNotSureOfItself(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, count_probability={found.n_novel: 0.5})


class CountsProbabilitiesInNumpy(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, count_probability={np.int64(found.n_novel): 1.0})


class IsTooSure(Toy):
    def _detect(self, X, n_novel):
        return changed(super()._detect(X, n_novel), count_probability={0: 1.5, 1: -0.5})


class RanksInTheWindow(Toy):
    def _novelty_p(self, X):
        order = np.argsort(np.argsort(-self._novelty(X)))
        return ((1 + order) / (1 + len(X))).astype(np.float32)


class Scores(Toy):
    """Gives scores, and holds out what it was fitted on."""

    def _fit(self, X, y):
        super()._fit(X, y)
        self._memory = Memory(X.copy(), y)

    def _memories(self):
        return None, self._memory

    def _score_classes(self, X):
        return torch.from_numpy(-self._distances(X))


class ScoresSomethingElse(Scores):
    def _score_classes(self, X):
        return super()._score_classes(X).flip(1)


class ScoresTheFirstClasses(Scores):
    def _score_classes(self, X):
        return super()._score_classes(X)[:, :3]


class IsCertainOfAll(Scores):
    def class_probabilities(self, X):
        return np.ones((len(X), len(self.classes_)))


class EmbedsInDoubles(Toy):
    def embed(self, X):
        return super().embed(X).astype(np.float64)


class EstimatesWhenTold(Toy):
    def _detect(self, X, n_novel):
        return super()._detect(X, None)


class FindsNothingOnRequest(Toy):
    def _detect(self, X, n_novel):
        return super()._detect(X, max(1, n_novel) if n_novel is not None else None)


class ScoresByTheCountFound(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, novelty=found.novelty + np.float32(found.n_novel))


class ScoresByTheCountGiven(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return found if n_novel is None else changed(found, novelty=2 * found.novelty)


class PredictsByTheBatch(Toy):
    def _predict(self, X):
        means = self._sums / self._counts[:, None]
        z = self._embed(X) - self._embed(X).mean(0)
        return np.linalg.norm(z[:, None] - (means - means.mean(0)), axis=2).argmin(1)


class EmbedsByTheBatch(Toy):
    def embed(self, X):
        z = super().embed(X)
        return z - z.mean(0)


class SortsItsClasses(Toy):
    @property
    def classes_(self):
        return np.sort(super().classes_)


class TakesLabelsForPositions(Toy):
    def predict(self, X):
        return np.sort(self.classes_)[self._predict(self._check_instances(X))]


BROKEN: dict[str, list[type[Toy]]] = {
    "labels_are_known": [AnswersMinusOne, AnswersPositions],
    "detection_is_well_formed": [
        CountsClustersFromOne,
        SaysNaN,
        SaysAllAtOnce,
        CountsInNumpy,
        SaysPValuesOfZero,
        SaysPValuesOfNaN,
        SaysOnePValue,
        IsNotSureOfItself,
        CountsProbabilitiesInNumpy,
        IsTooSure,
    ],
    "embedding_is_well_formed": [EmbedsInDoubles],
    "n_novel_is_respected": [EstimatesWhenTold, FindsNothingOnRequest],
    "novelty_ignores_n_novel": [ScoresByTheCountFound, ScoresByTheCountGiven],
    "predict_one_by_one": [PredictsByTheBatch],
    "embed_one_by_one": [EmbedsByTheBatch],
    "novelty_p_alone": [RanksInTheWindow],
    "probabilities_fit_predictions": [ScoresSomethingElse, ScoresTheFirstClasses, IsCertainOfAll],
    "classes_in_order_of_arrival": [SortsItsClasses],
    "remembered_was_told": [MixesUpItsMemory, RecallsSomethingElse],
    "labels_are_names": [TakesLabelsForPositions],
}


def test_scores_that_fit_pass() -> None:
    CHECKS["probabilities_fit_predictions"](Scores())


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
