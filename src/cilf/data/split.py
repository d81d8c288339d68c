"""The choice of held-out rows, where the data do not state a test split."""

from __future__ import annotations

import numpy as np

from cilf.core.random import generator
from cilf.core.types import Array, Bools
from cilf.errors import BadInput


def hold_out(y: Array, share: float, *, where: str) -> Bools:
    """Draw a share of each class, at least one instance, the same at every call.

    >>> hold_out(np.array(["a"] * 5 + ["b"] * 10), 0.2, where="example").sum()
    np.int64(3)
    """
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        alone = classes[counts.argmin()].item()
        raise BadInput(
            f"{where}: class {alone!r} has one instance only, but one is held out: add more "
            "instances, or leave the class out."
        )
    rng = generator(0, "held out")
    chosen = np.zeros(len(y), dtype=bool)
    for label, count in zip(classes, counts, strict=True):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen[rows[: max(1, min(count - 1, round(share * count)))]] = True
    return chosen
