"""What the checks of ``checks/state.py`` catch."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from cilf.checks import CHECKS, CheckFailed

from .toy import Toy, changed, name_cases


class LearnsInDetect(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        self._radius *= 1.01
        return found


class LearnsInPredict(Toy):
    def _predict(self, X):
        self._counts = self._counts + 1
        return super()._predict(X)


class WritesIntoItsInput(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        X[0] = 0
        return found


class DrawsFromNumpy(Toy):
    def _detect(self, X, n_novel):
        np.random.random()  # noqa: NPY002
        return super()._detect(X, n_novel)


class DrawsFromTorch(Toy):
    def _update(self, X, y, n_classes):
        torch.rand(1)
        super()._update(X, y, n_classes)


class SeedsPython(Toy):
    def _fit(self, X, y):
        random.seed(self.seed)
        super()._fit(X, y)


class IsUnseeded(Toy):
    def _novelty(self, X):
        return super()._novelty(X) + np.random.default_rng().normal(0, 1e-3, len(X))


class LooksAtTheGlobalGenerator(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._radius += torch.initial_seed() * 1e-9


class AliasesItsInput(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._X, self._y = X, y

    def _predict(self, X):
        distances = np.linalg.norm(self._embed(X)[:, None] - self._embed(self._X), axis=2)
        return self._y[distances.argmin(1)]


class LosesItsRadius(Toy):
    def _get_state(self):
        return super()._get_state()[0], {}

    def _set_state(self, arrays, plain):
        super()._set_state(arrays, {"radius": 1.0})


class LosesItsCounts(Toy):
    def _set_state(self, arrays, plain):
        super()._set_state(arrays, plain)
        self._sums = self._sums / self._counts[:, None]
        self._counts = np.ones_like(self._counts)


class RenamesAndReturnsNothing(Toy):
    def rename(self, names):
        super().rename(names)


class RemembersOldNames(Toy):
    def detect(self, X, n_novel=None):
        found = super().detect(X, n_novel)
        first = np.array([event["new_classes"] for event in self._history[:1]]).ravel()
        return changed(found, label=first[np.minimum(self._predict(X), len(first) - 1)])


class SortsWhatItRenames(Toy):
    def rename(self, names):
        super().rename(names)
        self._classes = sorted(self._classes, reverse=True)
        return self


class CountsRenamesAsUpdates(Toy):
    @property
    def _n_updates(self):
        return len(self._history) - 1

    def _novelty(self, X):
        return super()._novelty(X) * (1 + self._n_updates)


class KeepsEverything(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._all = X.copy()

    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._all = np.concatenate([self._all, X])

    def _get_state(self):
        arrays, plain = super()._get_state()
        return arrays | {"all": self._all}, plain


class FillsHoles(Toy):
    def detect(self, X, n_novel=None):
        return super().detect(np.nan_to_num(X) if np.asarray(X).dtype.kind == "f" else X, n_novel)


class SpeaksOfSomethingElse(Toy):
    def predict(self, X):
        try:
            return super().predict(X)
        except ValueError as error:
            raise type(error)("something is wrong") from error


class UpdatesBeforeItChecks(Toy):
    def update(self, X, y):
        self._require_fitted()
        self._radius *= 1.01
        return super().update(X, y)


BROKEN: dict[str, list[type[Toy]]] = {
    "detect_is_pure": [LearnsInDetect, LearnsInPredict],
    "inputs_stay": [WritesIntoItsInput],
    "generators_untouched": [DrawsFromNumpy, DrawsFromTorch, SeedsPython],
    "same_seed_same_result": [IsUnseeded, LooksAtTheGlobalGenerator],
    "inputs_not_aliased": [AliasesItsInput],
    "saved_goes_on_the_same": [LosesItsRadius, LosesItsCounts],
    "rename_changes_names_only": [
        RemembersOldNames,
        SortsWhatItRenames,
        CountsRenamesAsUpdates,
        RenamesAndReturnsNothing,
    ],
    "memory_is_bounded": [KeepsEverything],
    "bad_input_is_refused": [FillsHoles, SpeaksOfSomethingElse],
    "bad_input_changes_nothing": [UpdatesBeforeItChecks],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
