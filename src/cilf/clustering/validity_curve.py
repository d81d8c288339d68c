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
    """Take the maximum of the mean silhouette at which its curve bends most (the paper's)."""

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
    """The number of classes at the maximum of the curve where it bends down most.

    Its slope is zero at a maximum, so that its curvature is the second difference. The curve is
    mirrored at both ends: a maximum there bends as one inside that falls equally on both sides.
    Numbers whose validity is undefined are left out.

    >>> sharpest_bend({0: 0.0, 1: 0.5, 2: 1.0, 3: 0.9, 4: 0.8})
    2
    >>> sharpest_bend({0: 0.9, 1: 0.7, 2: 0.6, 3: 0.55})
    0
    """
    defined = sorted((k, value) for k, value in curve.items() if not math.isnan(value))
    if len(defined) < 2:
        return largest(curve)
    values = np.pad([value for _, value in defined], 1, mode="reflect")
    before, here, after = values[:-2], values[1:-1], values[2:]
    is_maximum = (here >= before) & (here >= after)
    bend = np.where(is_maximum, 2 * here - before - after, -np.inf)
    return defined[int(bend.argmax())][0]
