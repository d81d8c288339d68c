"""Confidence intervals of shares."""

from __future__ import annotations

import math


def bound_share(share: float, n: float, z: float) -> tuple[float, float]:
    """The Wilson interval of a share of ``n`` instances.

    It is not empty where the share is 0 or 1, and stays between them. ``z`` is the number of
    standard deviations.

    >>> [round(bound, 2) for bound in bound_share(1.0, 20, z=1.645)]
    [0.88, 1.0]
    """
    centre = (n * share + z * z / 2) / (n + z * z)
    half = z * math.sqrt(n * share * (1 - share) + z * z / 4) / (n + z * z)
    return max(0.0, centre - half), min(1.0, centre + half)
