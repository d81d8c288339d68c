"""Wrong labels in an update: classes with more doubtful labels than right ones have.

The learner says which labels are in doubt (:meth:`cilf.learners.Learner.check_labels`), of new
instances and of the ones it keeps, whose labels are taken to be right. The excess is the lower
bound of the difference between the two shares (Newcombe, 1998, from their Wilson intervals), so
that few instances prove little. Near-duplicates count as one instance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cilf.core.intervals import bound_share
from cilf.core.types import Array, Bools
from cilf.learners.base import LabelCheck

Z = 1.96
REFUSAL = 0.05  # excess over right labels; novel classes are harder to tell than known ones
FEWEST = 3  # doubtful instances that say anything
LEAST_AGREEMENT = 0.75  # of right labels, for a check that can refuse
MOST_NAMED = 5


@dataclass(frozen=True)
class LabelDoubts:
    """Labels of an update that are probably wrong.

    Attributes:
        label: the class that was given; None for all labels of the update together.
        n: the number of instances with this label, near-duplicates counted once.
        n_doubtful: the number of those in doubt.
        clean: the share of right labels that is in doubt.
        likely: the class that most of the doubtful ones look like, or whose labels are wrong.
        suspects: the identities of doubtful instances.
        refuses: whether there are so many that the update is refused.
    """

    label: str | None
    n: int
    n_doubtful: int
    clean: float
    likely: str
    suspects: tuple[str, ...]
    refuses: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"suspects": list(self.suspects)}

    def __str__(self) -> str:
        named = ", ".join(self.suspects[:MOST_NAMED])
        more = f" and {len(self.suspects) - MOST_NAMED} more" * (len(self.suspects) > MOST_NAMED)
        usual = f"of right labels {self.clean:.0%} do"
        if self.label is None:
            return (
                f"{self.n_doubtful} of {self.n} new labels contradict the others ({usual}): "
                f"{named}{more}"
            )
        return (
            f"{self.n_doubtful} of {self.n} new labels of class {self.label!r} contradict the "
            f"others ({usual}): they, or labels of {self.likely!r}, are wrong: {named}{more}"
        )


def find_label_doubts(check: LabelCheck | None, y: Array, ids: Sequence[str]) -> list[LabelDoubts]:
    """Find the classes, or all together, with more doubtful labels than right ones have."""
    if check is None or check.clean.n == 0:
        return []
    doubts = []
    for label in (*np.unique(y).tolist(), None):
        of = np.ones(len(y), dtype=bool) if label is None else y == label
        if found := _judge(check, label, of, ids):
            doubts.append(found)
    by_class = [found for found in doubts if found.label is not None]
    return by_class if any(found.refuses for found in by_class) else doubts


def _judge(
    check: LabelCheck, label: str | None, of: Bools, ids: Sequence[str]
) -> LabelDoubts | None:
    n, n_doubtful = _count_scenes(check, of), _count_scenes(check, of & check.is_doubtful)
    clean = check.clean
    excess = bound_excess(n_doubtful, n, clean.n_doubtful, clean.n)
    if n_doubtful < FEWEST or excess <= 0:
        return None
    rows = np.flatnonzero(of & check.is_doubtful)
    return LabelDoubts(
        label=label,
        n=n,
        n_doubtful=n_doubtful,
        clean=clean.n_doubtful / clean.n,
        likely=Counter(check.likely[rows].tolist()).most_common(1)[0][0],
        suspects=tuple(ids[row] for row in rows.tolist()),
        refuses=excess > REFUSAL and clean.n_agreeing >= LEAST_AGREEMENT * clean.n,
    )


def _count_scenes(check: LabelCheck, of: Bools) -> int:
    return len(np.unique(check.group[of]))


def bound_excess(k: int, n: int, clean_k: int, clean_n: int) -> float:
    """The lower bound of the difference between two shares.

    >>> round(bound_excess(20, 60, 2, 100), 2)
    0.2
    """
    share, clean = k / n, clean_k / clean_n
    below = share - bound_share(share, n, Z)[0]
    above = bound_share(clean, clean_n, Z)[1] - clean
    return share - clean - math.hypot(below, above)
