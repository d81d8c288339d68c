"""Labels that nobody gave: those of the neighbours that were asked about, or names of our own."""

from __future__ import annotations

import numbers
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from cilf.core import Detection, Label, validation
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig, BadInput
from cilf.query.strategies import SELF, Query

FEWEST_ANSWERS = 3
"""That a cluster needs to be named after them: one answer agrees with itself whatever the cluster
holds, two agree in half of the clusters that hold two classes alike, three in a quarter."""

OWN_NAME = re.compile(r"novel-(\d+)")


def propagate_answers(
    detection: Detection, rows: Any, answers: Any, purity: float = 0.8
) -> tuple[Ints, Array]:
    """Instances to teach, and their labels: those asked about, and the rest of their clusters.

    A cluster is named after its answers if there are at least three of them and the most
    frequent label makes up at least ``purity`` of them. Its other instances get that label; those
    that were asked about keep the label they were given.

    Args:
        detection: what is believed about the window.
        rows: of the window, that were asked about.
        answers: their labels.
        purity: least share of the most frequent label, above 0.0 and up to 1.0.

    >>> found = Detection(
    ...     novelty=np.ones(6), label=np.zeros(6, int), cluster=np.array([-1, 0, 0, 0, 0, 1]),
    ...     n_novel=2, curve={}, embedding=np.zeros((6, 1)))
    >>> rows, labels = propagate_answers(found, [1, 2, 4, 5], ["cat", "cat", "cat", "dog"])
    >>> rows.tolist(), labels.tolist()
    ([1, 2, 3, 4, 5], ['cat', 'cat', 'cat', 'cat', 'dog'])
    """
    check_purity(purity)
    asked = _rows(rows, len(detection))
    given = validation.labels(answers, n=len(asked), name="answers")
    labels = np.zeros(len(detection), dtype=given.dtype)
    taught = np.zeros(len(detection), dtype=bool)
    for cluster in np.unique(detection.cluster[detection.is_novel]):
        name = _agreed(given[detection.cluster[asked] == cluster], purity)
        if name is not None:
            members = detection.cluster == cluster
            labels[members], taught[members] = name, True
    labels[asked], taught[asked] = given, True
    return np.flatnonzero(taught), labels[taught]


def self_taught(detection: Detection, classes: Iterable[Label]) -> tuple[Ints, Array]:
    """Every instance believed novel, and a name of our own for each cluster.

    The names are ``novel-1``, ``novel-2``, ... and go on after the highest number among
    ``classes``: the learner's, and those it renamed (``learner.former_names``), so that no name
    ever means two things.

    >>> found = Detection(
    ...     novelty=np.ones(4), label=np.zeros(4, int), cluster=np.array([1, -1, 0, 1]),
    ...     n_novel=2, curve={}, embedding=np.zeros((4, 1)))
    >>> rows, labels = self_taught(found, ["cat", "dog", "novel-1"])
    >>> rows.tolist(), labels.tolist()
    ([0, 2, 3], ['novel-3', 'novel-2', 'novel-3'])
    """
    taken = [OWN_NAME.fullmatch(str(label)) for label in classes]
    last = max((int(match[1]) for match in taken if match), default=0)
    rows = np.flatnonzero(detection.is_novel)
    _, position = np.unique(detection.cluster[rows], return_inverse=True)
    return rows, np.array([f"novel-{last + 1 + i}" for i in position.tolist()], dtype=str)


def check_purity(purity: Any) -> None:
    """Refuse what is no share above 0."""
    if validation.number("propagate", purity, least=0.0, most=1.0) == 0:
        raise BadConfig("propagate is 0: give a share above 0, such as 0.8.")


def check_propagation(propagate: float | None, query: Query) -> None:
    """Refuse a propagation that could never happen."""
    if propagate is None:
        return
    check_purity(propagate)
    if query == SELF:
        raise BadConfig(
            f"propagate is {propagate!r} and query is {SELF!r}: nobody is asked then, so there are "
            "no answers to propagate; leave one of them out."
        )
    if isinstance(query, numbers.Integral) and query < FEWEST_ANSWERS:
        raise BadConfig(
            f"propagate is {propagate!r} and query is {query}: a cluster is named after no fewer "
            f"than {FEWEST_ANSWERS} answers; ask for more, or leave propagate out."
        )


def _rows(rows: Any, n: int) -> Ints:
    array = np.asarray(rows)
    if not array.size:
        return np.empty(0, dtype=np.int64)
    whole = array.ndim == 1 and array.dtype.kind in "iu"
    if not whole or array.min() < 0 or array.max() >= n:
        raise BadInput(f"rows is {rows!r}: give the numbers of rows of the window, 0 to {n - 1}.")
    if len(np.unique(array)) < len(array):
        raise BadInput(f"rows is {rows!r}: name each row once.")
    return array.astype(np.int64)


def _agreed(answers: Array, purity: float) -> Label | None:
    """The label that enough of the answers agree on, if there is one."""
    if len(answers) < FEWEST_ANSWERS:
        return None
    (name, count), *others = Counter(answers.tolist()).most_common(2)
    tied = bool(others) and others[0][1] == count
    return None if tied or count / len(answers) < purity else name
