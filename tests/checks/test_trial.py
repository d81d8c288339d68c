"""What a trial records, and that it is shared."""

from __future__ import annotations

import numpy as np

from cilf.checks.data import task
from cilf.checks.trial import fit_copy, keep_trial, run_trial

from .toy import Toy


class Careless(Toy):
    def detect(self, X, n_novel=None):
        np.random.random()  # noqa: NPY002
        X[0] = 0
        return super().detect(X, n_novel)


def test_a_careful_learner_changes_nothing() -> None:
    trial = run_trial(Toy(), task(), generators=3)
    assert trial.changed_inputs == trial.changed_parameters == trial.moved_generators == []
    assert [len(classes) for classes in trial.classes] == [3, 4]
    assert len(trial.predicted) == len(task().fresh.X)


def test_changes_are_recorded() -> None:
    trial = run_trial(Careless(), task(), generators=3)
    assert trial.changed_inputs == ["X of window", "X of fresh"]
    assert trial.moved_generators == ["numpy"]


def test_a_trial_is_run_once_for_each_learner() -> None:
    learner = Toy()
    assert keep_trial(learner) is keep_trial(learner)
    assert keep_trial(learner) is not keep_trial(Toy())


def test_a_fitted_copy_can_be_changed() -> None:
    learner = Toy()
    fit_copy(learner).update(*task().answers)
    assert len(fit_copy(learner).classes_) == 3
    assert not hasattr(learner, "_classes")
