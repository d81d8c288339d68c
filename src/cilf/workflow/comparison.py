"""The change of each class by an update, measured on the labelled instances that a model keeps.

Every instance is predicted before and after the update, so the loss is a mean of paired
differences. Its interval has the variance of these differences, after half an instance was added
to those that become wrong and half to those that become right (Agresti and Min, 2005). It is
narrower than a comparison of two accuracies, and not empty where no prediction changed.

An accuracy has a Wilson interval. Frames of one scene count as several instances in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cilf.core.intervals import bound_share
from cilf.core.types import Array

if TYPE_CHECKING:
    from cilf.learners import Learner
    from cilf.learners.base import Remembered

Z = 1.645  # the loss is below the lower bound in one of twenty cases
CLASS_Z = 2.33  # one of a hundred, since the worst of many classes is compared
CLASS_FACTOR = 3  # one class, measured on few instances, may lose so many times the tolerance
ROUNDING = 1e-9


class Score(NamedTuple):
    """The accuracy on some instances before and after an update."""

    n: int  # number of instances
    before: float
    after: float

    def to_json(self) -> dict[str, Any]:
        """The score for a JSON document, with the bounds of both accuracies."""
        bounds = {
            f"{name}_interval": bound_accuracy(accuracy, self.n)
            for name, accuracy in (("before", self.before), ("after", self.after))
        }
        plain = self._asdict().items()
        return {name: None if math.isnan(value) else value for name, value in plain} | bounds


class Accuracy(NamedTuple):
    """The mean of the accuracies of classes, with its bounds."""

    mean: float
    low: float
    high: float
    n: int  # instances that it was measured on


class Loss(NamedTuple):
    """The accuracy that an update costs, and how well that is known."""

    mean: float
    deviation: float
    n: int  # instances that it was measured on

    def interval(self, z: float = Z) -> tuple[float, float]:
        """The bounds of the loss."""
        return max(-1.0, self.mean - z * self.deviation), min(1.0, self.mean + z * self.deviation)

    def to_json(self) -> dict[str, Any]:
        """The loss for a JSON document; nulls if it was not measured."""
        if math.isnan(self.mean):
            return {"loss": None, "loss_low": None, "loss_high": None, "measured_on": self.n}
        low, high = self.interval()
        return {"loss": self.mean, "loss_low": low, "loss_high": high, "measured_on": self.n}


@dataclass(frozen=True)
class ClassChange:
    """The change of one class by an update.

    Attributes:
        label: the class.
        held_out: the score on instances that no training has used.
        memory: the score on instances that the model was trained on.
        n_changed: how many of the instances to rely on were right before or after, but not both.
    """

    label: str
    held_out: Score
    memory: Score
    n_changed: int = 0

    @property
    def score(self) -> Score:
        """The score to rely on: the one on held-out instances if there are any."""
        return self.held_out if self.held_out.n else self.memory

    @property
    def loss(self) -> float:
        """The accuracy that the class loses; NaN if it is new or no instance of it is kept."""
        return self.score.before - self.score.after

    @property
    def paired_loss(self) -> Loss:
        """The loss with its deviation."""
        n = self.score.n
        if math.isnan(self.loss):
            return Loss(math.nan, math.nan, 0)
        variance = (self.n_changed + 1) / (n + 1) - (self.loss * n / (n + 1)) ** 2
        return Loss(self.loss, math.sqrt(max(variance, 0.0) / (n + 1)), n)

    def to_json(self) -> dict[str, Any]:
        scores = {"held_out": self.held_out, "memory": self.memory}
        plain = {"label": self.label} | {name: score.to_json() for name, score in scores.items()}
        return plain | self.paired_loss.to_json()


def bound_accuracy(accuracy: float, n: float) -> tuple[float, float] | None:
    """The bounds of an accuracy that was measured on so many instances; None if on none."""
    return None if math.isnan(accuracy) or n == 0 else bound_share(accuracy, n, Z)


def average_scores(scores: Iterable[Score]) -> Accuracy | None:
    """The mean of the accuracies of classes (``after``); None if none was measured.

    A class with few instances makes the mean uncertain. So the bounds are those of as many
    instances as give the mean its variance, if all classes are equally hard.

    >>> average_scores([Score(20, math.nan, 0.9), Score(20, math.nan, 0.7)]).mean
    0.8
    """
    measured = [score for score in scores if score.n]
    if not measured:
        return None
    mean = float(np.mean([score.after for score in measured]))
    effective = len(measured) ** 2 / sum(1 / score.n for score in measured)
    low, high = bound_share(mean, effective, Z)
    return Accuracy(mean, low, high, sum(score.n for score in measured))


def score_kept(learner: Learner) -> list[ClassChange]:
    """Score each class of a learner on what it keeps, as an update does; nothing is ``before``."""
    now, labels = learner.remembered(), learner.classes_.tolist()
    return [] if now is None else _compare_all(labels, now, None, learner.recall(now))


def update_and_compare(learner: Learner, X: Array, y: Array) -> list[ClassChange]:
    """Update a learner, and measure what that does to each class, the known classes first."""
    old, kept = learner.classes_.tolist(), learner.remembered()
    before = None if kept is None else learner.recall(kept)
    learner.update(X, y)
    changes = [] if kept is None else _compare_all(old, kept, before, learner.recall(kept))
    return changes + score_kept(learner)[len(old) :]


def _compare_all(
    labels: Sequence[str], kept: Remembered, before: Array | None, after: Array
) -> list[ClassChange]:
    return [_compare(label, kept, before, after) for label in labels]


def _compare(label: str, kept: Remembered, before: Array | None, after: Array) -> ClassChange:
    def measure(held_out: bool) -> tuple[Score, int]:
        of = (kept.y == label) & (kept.held_out == held_out)
        if not of.any():
            return Score(0, math.nan, math.nan), 0
        is_right = after[of] == label
        if before is None:
            return Score(int(of.sum()), math.nan, float(is_right.mean())), 0
        was_right = before[of] == label
        score = Score(int(of.sum()), float(was_right.mean()), float(is_right.mean()))
        return score, int((was_right != is_right).sum())

    (held_out, changed), (memory, changed_in_memory) = measure(True), measure(False)
    return ClassChange(label, held_out, memory, changed if held_out.n else changed_in_memory)


def measure_loss(changes: Sequence[ClassChange]) -> Loss:
    """The accuracy that known classes lose on average; NaN if it cannot be measured."""
    losses = [c.paired_loss for c in changes if not math.isnan(c.loss)]
    if not losses:
        return Loss(math.nan, math.nan, 0)
    deviation = math.hypot(*(loss.deviation for loss in losses)) / len(losses)
    mean = float(np.mean([loss.mean for loss in losses]))
    return Loss(mean, deviation, sum(loss.n for loss in losses))


def select_losses(changes: Sequence[ClassChange], tolerance: float) -> list[ClassChange]:
    """Select the known classes that lose more than the tolerance, and surely something."""
    return [
        change
        for change in changes
        if change.loss > tolerance + ROUNDING and change.paired_loss.interval()[0] > 0
    ]


def explain_refusal(changes: Sequence[ClassChange], tolerance: float) -> str | None:
    """Explain why an update surely costs the known classes too much; None if it does not.

    >>> few = Score(20, before=1.0, after=0.7)
    >>> print(explain_refusal([ClassChange("cat", few, few, n_changed=6)], tolerance=0.15))
    None
    >>> explain_refusal([ClassChange("cat", few, few, n_changed=6)], tolerance=0.1)
    'known classes would lose 0.300 (0.120 to 0.480) of accuracy on average, measured on 20
    instances (cat: 1.000 before, 0.700 after, on 20)'
    """
    measured = [change for change in changes if not math.isnan(change.loss)]
    if not measured:
        return None
    loss, worst = measure_loss(measured), max(measured, key=lambda change: change.loss)
    n, before, after = worst.score
    seen = f"{worst.label}: {before:.3f} before, {after:.3f} after, on {n}"
    if loss.interval()[0] > tolerance + ROUNDING:
        return (
            f"known classes would lose {_format(loss, Z)} of accuracy on average, measured on "
            f"{loss.n} instances ({seen})"
        )
    surest = max(measured, key=lambda change: change.paired_loss.interval(CLASS_Z)[0])
    loss = surest.paired_loss
    if loss.interval(CLASS_Z)[0] > CLASS_FACTOR * tolerance + ROUNDING:
        return (
            f"class {surest.label!r} would lose {_format(loss, CLASS_Z)} of accuracy, measured on "
            f"{loss.n} instances"
        )
    return None


def _format(loss: Loss, z: float) -> str:
    low, high = loss.interval(z)
    return f"{loss.mean:.3f} ({low:.3f} to {high:.3f})"
