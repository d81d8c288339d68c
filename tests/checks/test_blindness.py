"""What the checks of ``checks/blindness.py`` catch."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed

from .toy import Toy, changed, name_cases


class Peeks(Toy):
    def detect(self, X, n_novel=None):
        truth = getattr(X, "truth", None)
        found = super().detect(X, n_novel)
        if truth is None:
            return found
        return changed(found, novelty=np.float32(~np.isin(truth, self.classes_)))


class PeeksUnderTheArray(Toy):
    def _predict(self, X):
        truth = getattr(X.base, "truth", None)
        predicted = super()._predict(X)
        if truth is None:
            return predicted
        position = {label: i for i, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, 0) for label in truth.tolist()])


BROKEN: dict[str, list[type[Toy]]] = {
    "blind_to_hidden_truth": [Peeks, PeeksUnderTheArray],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())
