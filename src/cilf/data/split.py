"""Names of splits, and the choice of held-out rows where the data state no test split."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cilf.core.near_duplicates import choose_groups, find_mixed
from cilf.core.notices import warn_once
from cilf.core.random import generator
from cilf.core.types import Array, Bools, Ints
from cilf.errors import BadInput

TRAIN_NAMES = frozenset({"train", "training"})
TEST_NAMES = frozenset({"test", "testing", "val", "valid", "validation"})


def parse_split(name: str | None) -> Literal["train", "test"] | None:
    """Parse the name of a split; None if it is none.

    >>> parse_split("Validation")
    'test'
    """
    plain = (name or "").strip().lower()
    if plain in TRAIN_NAMES:
        return "train"
    return "test" if plain in TEST_NAMES else None


def hold_out(y: Array, share: float, *, where: str, group: Ints | None = None) -> Bools:
    """Draw a share of each class, at least one instance, the same at every call.

    Instances with one number in ``group`` are near-duplicates and stay together. They are not held
    out if their labels differ. A class whose instances are all near-duplicates of each other is
    divided nevertheless, which a notice says.

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
    group = np.arange(len(y)) if group is None else group
    is_mixed = find_mixed(group, y)
    rng = generator(0, "held out")
    chosen = np.zeros(len(y), dtype=bool)
    for label, count in zip(classes, counts, strict=True):
        rows = rng.permutation(np.flatnonzero(y == label))
        wanted = max(1, min(count - 1, round(share * count)))
        taken = choose_groups(group, rows[~is_mixed[rows]], wanted, most=count - 1)
        if not len(taken):
            warn_once(
                f"{where}: class {label.item()!r} cannot be divided without near-duplicates on "
                "both sides: its held-out score says little"
            )
            taken = rows[:wanted]
        chosen[taken] = True
    return chosen
