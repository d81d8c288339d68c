"""A learner uses the labels it was given, and no truth that the query never revealed."""

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


class Overheard(np.ndarray[Any, Any]):
    """Instances that carry the truth about themselves, for a learner that cheats."""

    truth: Array


@check
def check_blind_to_hidden_truth(learner: Learner) -> None:
    """Instances that carry a (wrong) truth with them are judged as those that carry none."""
    data = task()
    overheard = data._replace(window=_attach_truth(data.window), fresh=_attach_truth(data.fresh))
    blind, tempted = keep_trial(learner), run_trial(learner, overheard, generators=987654321)
    when = "when truth that was never queried is within reach"
    require_same_detection(blind.found, tempted.found, when)
    require_same_detection(blind.found_later, tempted.found_later, when)
    require_same(blind.predicted, tempted.predicted, f"predict, {when},")


def _attach_truth(labelled: Labelled) -> Labelled:
    """The same instances, with the labels of others whispered into them."""
    instances = labelled.X.view(Overheard).copy()  # owns its memory: plain views lead back to it
    instances.truth = labelled.y[::-1]
    return Labelled(instances, labelled.y)
