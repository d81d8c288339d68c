"""Checks of behaviour: a learner finds a novel class, learns it and keeps the old classes."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from cilf.checks.check import check, require
from cilf.checks.data import NOVEL, task
from cilf.checks.trial import keep_trial
from cilf.core import Detection, Labelled
from cilf.core.types import Array
from cilf.learners.base import Learner

# The nearest class mean of raw pixels reaches 1.0, 1.0 and 0.97, and loses 0.4.
LEAST_AUROC = 0.8
LEAST_NEW_ACCURACY = 0.7
LEAST_OLD_ACCURACY = 0.8
LEAST_LOSS_OF_NOVELTY = 0.1


@check
def check_novel_looks_novel(learner: Learner) -> None:
    """Before the update, instances of the novel class look more novel than known ones."""
    seen = _auroc(keep_trial(learner).found, task().window)
    require(seen >= LEAST_AUROC, f"the AUROC of novelty is {seen:.2f}, below {LEAST_AUROC}")


@check
def check_new_class_is_recognised(learner: Learner) -> None:
    """After the update, new instances of the learned class get its name."""
    truth = task().fresh.y
    seen = _accuracy(keep_trial(learner).predicted, truth, truth == NOVEL)
    enough = seen >= LEAST_NEW_ACCURACY
    require(
        enough, f"{seen:.0%} of the learned class is recognised, below {LEAST_NEW_ACCURACY:.0%}"
    )


@check
def check_old_classes_are_kept(learner: Learner) -> None:
    """After the update, new instances of the first classes still get their names."""
    truth = task().fresh.y
    seen = _accuracy(keep_trial(learner).predicted, truth, truth != NOVEL)
    enough = seen >= LEAST_OLD_ACCURACY
    require(enough, f"{seen:.0%} of the old classes is recognised, below {LEAST_OLD_ACCURACY:.0%}")


@check
def check_learned_class_looks_less_novel(learner: Learner) -> None:
    """Once a class is learned, its instances look less novel than they did."""
    before = _auroc(keep_trial(learner).found, task().window)
    after = _auroc(keep_trial(learner).found_later, task().fresh)
    seen = f"the AUROC of the learned class's novelty was {before:.2f} and is {after:.2f}"
    require(after <= before - LEAST_LOSS_OF_NOVELTY, seen)


def _auroc(found: Detection, window: Labelled) -> float:
    return float(roc_auc_score(window.y == NOVEL, found.novelty))


def _accuracy(predicted: Array, truth: Array, rows: Array) -> float:
    return float(np.mean(predicted[rows] == truth[rows]))
