"""Which rows are held out, where the data do not say."""

from __future__ import annotations

import numpy as np

from cilf.core.random import generator
from cilf.core.types import Array, Bools
from cilf.errors import BadInput


def held_out(y: Array, share: float, *, where: str) -> Bools:
    """This share of each class, at least one instance, drawn the same way each time.

    >>> held_out(np.array(["a"] * 5 + ["b"] * 10), 0.2, where="example").sum()
    np.int64(3)
    """
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        alone = classes[counts.argmin()].item()
        raise BadInput(
            f"{where}: class {alone!r} has one instance only, and one is held out: add more of it, "
            "or leave it out."
        )
    rng = generator(0, "held out")
    chosen = np.zeros(len(y), dtype=bool)
    for label, count in zip(classes, counts, strict=True):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen[rows[: max(1, min(count - 1, round(share * count)))]] = True
    return chosen
