"""What an update does to each class, seen on the labelled instances that a model keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cilf.core.types import Array
from cilf.learners import Learner
from cilf.learners.base import Remembered

WORST = 3  # times as much as all on average may one class lose: it is measured on few instances


class Score(NamedTuple):
    """How many instances, and the share of them that was recognised before and after."""

    n: int
    before: float
    after: float

    def to_json(self) -> dict[str, float | None]:
        plain = self._asdict().items()
        return {name: None if math.isnan(value) else value for name, value in plain}


@dataclass(frozen=True)
class ClassChange:
    """What an update does to one class.

    Attributes:
        label: the class.
        held_out: seen on instances that no training has used.
        memory: seen on instances that it learned from.
    """

    label: str
    held_out: Score
    memory: Score

    @property
    def deciding(self) -> Score:
        """What is trusted: held-out instances if there are any."""
        return self.held_out if self.held_out.n else self.memory

    @property
    def loss(self) -> float:
        """Accuracy that the class loses; NaN if it is new, or nothing is kept of it."""
        return self.deciding.before - self.deciding.after

    def to_json(self) -> dict[str, Any]:
        parts = {"held_out": self.held_out, "memory": self.memory}
        return {"label": self.label} | {name: score.to_json() for name, score in parts.items()}


def update_and_compare(learner: Learner, X: Array, y: Array) -> list[ClassChange]:
    """Update a learner, and measure what that does to each class, the known classes first."""
    old, kept = learner.classes_.tolist(), learner.remembered()
    before = None if kept is None else learner.recall(kept)
    learner.update(X, y)
    arrived, now = learner.classes_.tolist()[len(old) :], learner.remembered()
    changes = []
    if kept is not None:
        after = learner.recall(kept)
        changes += [_change(label, kept, before, after) for label in old]
    if now is not None:
        after = learner.recall(now)
        changes += [_change(label, now, None, after) for label in arrived]
    return changes


def _change(label: str, kept: Remembered, before: Array | None, after: Array) -> ClassChange:
    def score(held_out: bool) -> Score:
        of = (kept.y == label) & (kept.held_out == held_out)
        if not of.any():
            return Score(0, math.nan, math.nan)
        was = math.nan if before is None else float((before[of] == label).mean())
        return Score(int(of.sum()), was, float((after[of] == label).mean()))

    return ClassChange(label, held_out=score(True), memory=score(False))


def mean_loss(changes: Sequence[ClassChange]) -> float:
    """What old classes lose on average; NaN if nothing is known about that."""
    losses = [change.loss for change in changes if not math.isnan(change.loss)]
    return float(np.mean(losses)) if losses else math.nan


def hurt(changes: Sequence[ClassChange], tolerance: float) -> list[ClassChange]:
    """Old classes that lose more than this, be it much or by chance."""
    return [change for change in changes if change.loss > tolerance + 1e-9]


def too_much(changes: Sequence[ClassChange], tolerance: float) -> str | None:
    """Why an update costs the old classes more than is tolerated, if it does.

    >>> few = Score(20, before=1.0, after=0.7)
    >>> print(too_much([ClassChange("cat", few, few)], tolerance=0.3))
    None
    >>> too_much([ClassChange("cat", few, few)], tolerance=0.1)
    'old classes would lose 0.300 of accuracy on average (cat: 1.000 before, 0.700 after, ...)'
    """
    measured = [change for change in changes if not math.isnan(change.loss)]
    if not measured:
        return None
    worst = max(measured, key=lambda change: change.loss)
    n, before, after = worst.deciding
    seen = f"{worst.label}: {before:.3f} before, {after:.3f} after, on {n} instances"
    if mean_loss(measured) > tolerance + 1e-9:
        return f"old classes would lose {mean_loss(measured):.3f} of accuracy on average ({seen})"
    if worst.loss > WORST * tolerance + 1e-9:
        return f"class {worst.label!r} would lose {worst.loss:.3f} of accuracy ({seen})"
    return None
