"""Rules that read the number of novel classes off the validity curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from cilf.clustering.evidence import CountRule, Evidence


@dataclass(frozen=True, kw_only=True, repr=False)
class Silhouette(CountRule):
    """Take the clustering with the largest mean silhouette."""

    def find_centres(self, evidence: Evidence) -> Tensor:
        return evidence.clusterings[largest(evidence.curve)].novel


@dataclass(frozen=True, kw_only=True, repr=False)
class Curvature(CountRule):
    """Take the clustering at which the curve of the mean silhouette bends most (the paper's)."""

    def find_centres(self, evidence: Evidence) -> Tensor:
        return evidence.clusterings[sharpest_bend(evidence.curve)].novel


def largest(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity is largest.

    >>> largest({0: 0.1, 1: 0.4, 2: 0.3})
    1
    """
    defined = {k: value for k, value in curve.items() if not math.isnan(value)}
    return max(defined, key=lambda k: defined[k], default=0)


def sharpest_bend(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity curve bends most (its curvature).

    >>> sharpest_bend({0: 0.0, 1: 0.5, 2: 1.0, 3: 0.9, 4: 0.8})
    2
    """
    defined = sorted((k, value) for k, value in curve.items() if not math.isnan(value))
    if len(defined) < 3:
        return largest(curve)
    ks = np.array([k for k, _ in defined], dtype=float)
    values = np.array([value for _, value in defined])
    slope = np.gradient(values, ks)
    bend = np.abs(np.gradient(slope, ks)) / (1 + slope**2) ** 1.5
    return int(ks[bend[1:-1].argmax() + 1])
