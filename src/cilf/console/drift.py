"""Drift: the distance that known classes have moved in the embedding since earlier windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cilf.core.types import Array, Floats
from cilf.workflow.findings import Findings
from cilf.workflow.versions import ModelFolder, load_model

MIN_INSTANCES = 5  # of a class in each window
MAX_INSTANCES = 50
N_EARLIER = 3  # windows


def measure_drift(model: Path, findings: Findings, earlier: Iterable[Findings]) -> dict[str, float]:
    """Class -> distance that its mean has moved, in units of its spread.

    The current model embeds both windows, so only the instances differ. Classes with few instances
    in this window or in the earlier ones are left out.
    """
    former = ModelFolder(model).former_names()
    then = {former.get(label, label): X for label, X in _last_members(earlier).items()}
    now = _members(findings)
    shared = [label for label in now if label in then]
    if not shared:
        return {}
    learner = load_model(model).learner
    drift = {}
    for label in shared:
        before, after = learner.embed(then[label]), learner.embed(now[label])
        drift[label] = round(shift(before, after), 3)
    return drift


def shift(before: Floats, after: Floats) -> float:
    """The distance of two means over the spread, less the distance expected by chance.

    >>> same = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> shift(same, same), round(shift(same, same + 4), 1)
    (0.0, 8.0)
    """
    both = [points.astype(np.float64) for points in (before, after)]
    variance = float(np.mean([points.var(axis=0).sum() for points in both]))
    away = float(((both[0].mean(axis=0) - both[1].mean(axis=0)) ** 2).sum())
    chance = variance * sum(1 / len(points) for points in both)
    return math.sqrt(max(0.0, away - chance) / max(variance, 1e-12))


def _last_members(earlier: Iterable[Findings]) -> dict[str, Array]:
    members: dict[str, Array] = {}
    for _, findings in zip(range(N_EARLIER), earlier, strict=False):
        members = _members(findings) | members
    return members


def _members(findings: Findings) -> dict[str, Array]:
    """Class -> some instances that were predicted as it."""
    found = findings.assignments
    members = {}
    for label in found.known_counts:
        rows = np.flatnonzero((found.cluster < 0) & (found.label == label))
        if len(rows) >= MIN_INSTANCES:
            members[label] = findings.instances(rows[:MAX_INSTANCES])
    return members
