"""What the checks of ``checks/edits.py`` catch."""

from __future__ import annotations

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed
from cilf.learners.editable import LEAVES, EditableLearner
from cilf.nn.memory import Memory

from .toy import Toy, name_cases


class EditableToy(EditableLearner, Toy):
    """Nearest class mean over all instances, which it keeps. Keeps the contract."""

    def _fit(self, X, y):
        self._all = Memory(X.copy(), y)
        super()._fit(X, y)

    def _update(self, X, y, n_classes):
        self._all = self._all.combine(X, y)
        self._sums, self._counts = self._totals(self._all.X, self._all.y, n_classes)

    def _reassign_classes(self, positions, n_classes):
        self._set_all(self._all.reassign(positions), n_classes)

    def _retract(self, X, y):
        gone = [row for row in self._all.find(X, y) if row is not None]
        self._set_all(self._all.without(gone), len(self._counts))

    def _set_all(self, kept, n_classes):
        self._all = kept
        self._sums, self._counts = self._totals(kept.X, kept.y, n_classes)

    def _memories(self):
        return self._all, None

    def _get_state(self):
        arrays, plain = super()._get_state()
        return arrays | self._all.arrays("all"), plain

    def _set_state(self, arrays, plain):
        super()._set_state(arrays, plain)
        self._all = Memory.restore(arrays, "all")


class RemembersWhatItForgets(EditableToy):
    def _reassign_classes(self, positions, n_classes):
        super()._reassign_classes(np.where(positions == LEAVES, 0, positions), n_classes)


class ForgetsInNameOnly(EditableToy):
    def forget(self, *labels):
        return self


class MergesInNameOnly(EditableToy):
    def _reassign_classes(self, positions, n_classes):
        first = [int(np.flatnonzero(positions == i)[0]) for i in range(n_classes)]
        only = np.full(len(positions), LEAVES)
        only[first] = np.arange(n_classes)
        super()._reassign_classes(only, n_classes)


class KeepsWhatItTakesBack(EditableToy):
    def _retract(self, X, y):
        pass


class TakesBackTheWholeClass(EditableToy):
    def _retract(self, X, y):
        self._set_all(self._all.rows(np.flatnonzero(~np.isin(self._all.y, y))), len(self._counts))


BROKEN: dict[str, list[type[Toy]]] = {
    "forgotten_class_is_gone": [RemembersWhatItForgets, ForgetsInNameOnly],
    "merged_classes_are_one": [MergesInNameOnly],
    "retracted_labels_are_gone": [KeepsWhatItTakesBack, TakesBackTheWholeClass],
}


@pytest.mark.parametrize(("name", "broken"), name_cases(BROKEN))
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("learner", [Toy, EditableToy])
def test_a_learner_that_keeps_the_contract_passes(name: str, learner: type[Toy]) -> None:
    CHECKS[name](learner())
