"""The check that a learner uses no label that the query did not reveal."""

from __future__ import annotations

from typing import Any

import numpy as np

from cilf.checks.check import check
from cilf.checks.compare import require_same, require_same_detection
from cilf.checks.data import task
from cilf.checks.trial import keep_trial, run_trial
from cilf.core import Labelled
from cilf.core.types import Array
from cilf.learners.base import Learner


class LeakyInstances(np.ndarray[Any, Any]):
    """Instances that carry labels which a learner must not read."""

    truth: Array


@check
def check_blind_to_hidden_truth(learner: Learner) -> None:
    """Labels that are attached to the instances of a window do not change the result."""
    data = task()
    with_truth = data._replace(window=_attach_truth(data.window), fresh=_attach_truth(data.fresh))
    blind, tempted = keep_trial(learner), run_trial(learner, with_truth, generators=987654321)
    when = "when truth that was never queried is within reach"
    require_same_detection(blind.found, tempted.found, when)
    require_same_detection(blind.found_later, tempted.found_later, when)
    require_same(blind.predicted, tempted.predicted, f"predict, {when},")


def _attach_truth(labelled: Labelled) -> Labelled:
    """Attach wrong labels to the instances."""
    instances = labelled.X.view(LeakyInstances).copy()  # copied: it is the base of its views
    instances.truth = labelled.y[::-1]
    return Labelled(instances, labelled.y)
