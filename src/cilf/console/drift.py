"""How far known classes have moved since they were seen last, in the eyes of the model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cilf.core.types import Array, Floats
from cilf.workflow.findings import Findings
from cilf.workflow.versions import ModelFolder, load_model

FEWEST = 5  # instances of a class on either side
MOST = 50
LOOK_BACK = 3  # windows


def drifts(model: Path, findings: Findings, earlier: Iterable[Findings]) -> dict[str, float]:
    """Class -> how far the middle of its instances has moved, in units of their own spread.

    Both windows are seen by the same model, so that only the instances differ. Classes that were
    not seen lately, or of which there are few, are left out.
    """
    former = ModelFolder(model).former_names()
    then = {former.get(label, label): X for label, X in _last_seen(earlier).items()}
    now = _members(findings)
    shared = [label for label in now if label in then]
    if not shared:
        return {}
    learner = load_model(model).learner
    moved = {}
    for label in shared:
        before, after = learner.embed(then[label]), learner.embed(now[label])
        moved[label] = round(shift(before, after), 3)
    return moved


def shift(before: Floats, after: Floats) -> float:
    """The distance of two means over the spread, less what chance makes of it.

    >>> same = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> shift(same, same), round(shift(same, same + 4), 1)
    (0.0, 8.0)
    """
    both = [part.astype(np.float64) for part in (before, after)]
    variance = float(np.mean([part.var(axis=0).sum() for part in both]))
    away = float(((both[0].mean(axis=0) - both[1].mean(axis=0)) ** 2).sum())
    chance = variance * sum(1 / len(part) for part in both)
    return math.sqrt(max(0.0, away - chance) / max(variance, 1e-12))


def _last_seen(earlier: Iterable[Findings]) -> dict[str, Array]:
    seen: dict[str, Array] = {}
    for _, findings in zip(range(LOOK_BACK), earlier, strict=False):
        seen = _members(findings) | seen
    return seen


def _members(findings: Findings) -> dict[str, Array]:
    """Class -> some instances that were taken for it."""
    found = findings.assignments
    members = {}
    for label in found.known_counts:
        rows = np.flatnonzero((found.cluster < 0) & (found.label == label))
        if len(rows) >= FEWEST:
            members[label] = findings.instances(rows[:MOST])
    return members
