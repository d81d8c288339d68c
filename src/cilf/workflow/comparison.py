"""The change of each class by an update, measured on the labelled instances that a model keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cilf.core.types import Array

if TYPE_CHECKING:
    from cilf.learners import Learner
    from cilf.learners.base import Remembered

CLASS_FACTOR = 3  # one class, measured on few instances, may lose so many times the tolerance
ROUNDING = 1e-9


class Score(NamedTuple):
    """The accuracy on some instances before and after an update."""

    n: int  # number of instances
    before: float
    after: float

    def to_json(self) -> dict[str, float | None]:
        plain = self._asdict().items()
        return {name: None if math.isnan(value) else value for name, value in plain}


@dataclass(frozen=True)
class ClassChange:
    """The change of one class by an update.

    Attributes:
        label: the class.
        held_out: the score on instances that no training has used.
        memory: the score on instances that the model was trained on.
    """

    label: str
    held_out: Score
    memory: Score

    @property
    def score(self) -> Score:
        """The score to rely on: the one on held-out instances if there are any."""
        return self.held_out if self.held_out.n else self.memory

    @property
    def loss(self) -> float:
        """The accuracy that the class loses; NaN if it is new or no instance of it is kept."""
        return self.score.before - self.score.after

    def to_json(self) -> dict[str, Any]:
        scores = {"held_out": self.held_out, "memory": self.memory}
        return {"label": self.label} | {name: score.to_json() for name, score in scores.items()}


def update_and_compare(learner: Learner, X: Array, y: Array) -> list[ClassChange]:
    """Update a learner, and measure what that does to each class, the known classes first."""
    old, kept = learner.classes_.tolist(), learner.remembered()
    before = None if kept is None else learner.recall(kept)
    learner.update(X, y)
    arrived, now = learner.classes_.tolist()[len(old) :], learner.remembered()
    changes = []
    if kept is not None:
        after = learner.recall(kept)
        changes += [_compare(label, kept, before, after) for label in old]
    if now is not None:
        after = learner.recall(now)
        changes += [_compare(label, now, None, after) for label in arrived]
    return changes


def _compare(label: str, kept: Remembered, before: Array | None, after: Array) -> ClassChange:
    def measure(held_out: bool) -> Score:
        of = (kept.y == label) & (kept.held_out == held_out)
        if not of.any():
            return Score(0, math.nan, math.nan)
        was = math.nan if before is None else float((before[of] == label).mean())
        return Score(int(of.sum()), was, float((after[of] == label).mean()))

    return ClassChange(label, held_out=measure(True), memory=measure(False))


def mean_loss(changes: Sequence[ClassChange]) -> float:
    """The accuracy that known classes lose on average; NaN if it cannot be measured."""
    losses = [change.loss for change in changes if not math.isnan(change.loss)]
    return float(np.mean(losses)) if losses else math.nan


def select_losses(changes: Sequence[ClassChange], tolerance: float) -> list[ClassChange]:
    """Select the known classes that lose more than the tolerance, each alone."""
    return [change for change in changes if change.loss > tolerance + ROUNDING]


def explain_refusal(changes: Sequence[ClassChange], tolerance: float) -> str | None:
    """Explain why an update costs the known classes too much; None if it does not.

    >>> few = Score(20, before=1.0, after=0.7)
    >>> print(explain_refusal([ClassChange("cat", few, few)], tolerance=0.3))
    None
    >>> explain_refusal([ClassChange("cat", few, few)], tolerance=0.1)
    'known classes would lose 0.300 of accuracy on average (cat: 1.000 before, 0.700 after, ...)'
    """
    measured = [change for change in changes if not math.isnan(change.loss)]
    if not measured:
        return None
    worst = max(measured, key=lambda change: change.loss)
    n, before, after = worst.score
    seen = f"{worst.label}: {before:.3f} before, {after:.3f} after, on {n} instances"
    if mean_loss(measured) > tolerance + ROUNDING:
        return f"known classes would lose {mean_loss(measured):.3f} of accuracy on average ({seen})"
    if worst.loss > CLASS_FACTOR * tolerance + ROUNDING:
        return f"class {worst.label!r} would lose {worst.loss:.3f} of accuracy ({seen})"
    return None
