"""What the checks of ``checks/api.py`` catch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed

from .toy import Toy, name_cases


class TakesPositionalArguments(Toy):
    def __init__(self, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = reach


class TunnelsArguments(Toy):
    def __init__(self, *, seed: int = 0, **more: Any) -> None:
        super().__init__(seed=seed, **more)


class HasNoSeed(Toy):
    def __init__(self, *, reach: float = 1.2) -> None:
        super().__init__(reach=reach)


class ConvertsInInit(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = float(reach)


class ComputesInInit(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        super().__init__(seed=seed, reach=reach)
        self.means: list[float] = []


class ChangesItsParameters(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self.reach = self.reach + 0.1


class ChangesAMutableParameter(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2, seen: tuple[Any, ...] = ([],)) -> None:
        super().__init__(seed=seed, reach=reach)
        self.seen = seen

    def _fit(self, X, y):
        super()._fit(X, y)
        self.seen[0].append(len(X))


class KeepsStateInTheClass(Toy):
    def fit(self, X, y):
        super().fit(X, y)
        type(self)._classes = self._classes
        return self


class EmbedsBeforeFit(Toy):
    def embed(self, X):
        return self._embed(np.asarray(X))


class ReturnsNothing(Toy):
    def update(self, X, y):
        super().update(X, y)


class FitGoesOn(Toy):
    def _fit(self, X, y):
        before = getattr(self, "_radius", 0.0)
        super()._fit(X, y)
        self._radius = max(self._radius, 1.01 * before)


BROKEN: dict[str, list[type[Toy]]] = {
    "constructor_signature": [TakesPositionalArguments, TunnelsArguments, HasNoSeed],
    "init_only_stores": [ConvertsInInit, ComputesInInit],
    "parameters_stay": [ChangesItsParameters, ChangesAMutableParameter],
    "clone_is_fresh": [KeepsStateInTheClass],
    "not_fitted": [EmbedsBeforeFit],
    "fit_and_update_return_self": [ReturnsNothing],
    "fit_starts_afresh": [FitGoesOn],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
