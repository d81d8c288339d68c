"""Labels that no person gave: those of queried neighbours, or names made up for clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from cilf.core import Detection, Label, validation
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig, BadInput
from cilf.query.budget import SELF, Query, is_budget

MIN_ANSWERS = 3
"""Answers that a cluster needs before its other instances get their label. One answer always
agrees with itself. Of a cluster that holds two classes alike, two answers agree in half of the
cases and three in a quarter."""

MADE_UP_NAME = re.compile(r"novel-(\d+)")


def propagate_answers(
    detection: Detection, rows: Any, answers: Any, purity: float = 0.8
) -> tuple[Ints, Array]:
    """Propagate the answers about some instances of a cluster to the rest of it.

    The other instances of a cluster get the most frequent of its answers if there are at least
    three answers and the most frequent one makes up at least ``purity`` of them. Queried instances
    keep their own answer.

    Parameters
    ----------
    detection : Detection
        Detection of the window.
    rows : sequence of int
        Rows of the window that were queried.
    answers : sequence of labels
        Labels of these rows.
    purity : float, default=0.8
        Least share of the most frequent answer, above 0.0 and up to 1.0.

    Returns
    -------
    rows, labels : arrays
        Rows that have a label now, and their labels.

    >>> found = Detection(
    ...     novelty=np.ones(6), label=np.zeros(6, int), cluster=np.array([-1, 0, 0, 0, 0, 1]),
    ...     n_novel=2, curve={}, embedding=np.zeros((6, 1)))
    >>> rows, labels = propagate_answers(found, [1, 2, 4, 5], ["cat", "cat", "cat", "dog"])
    >>> rows.tolist(), labels.tolist()
    ([1, 2, 3, 4, 5], ['cat', 'cat', 'cat', 'cat', 'dog'])
    """
    check_purity(purity)
    queried = _check_rows(rows, len(detection))
    given = validation.labels(answers, n=len(queried), name="answers")
    labels = np.zeros(len(detection), dtype=given.dtype)
    labelled = np.zeros(len(detection), dtype=bool)
    for cluster in np.unique(detection.cluster[detection.is_novel]):
        label = _agreed_label(given[detection.cluster[queried] == cluster], purity)
        if label is not None:
            members = detection.cluster == cluster
            labels[members], labelled[members] = label, True
    labels[queried], labelled[queried] = given, True
    return np.flatnonzero(labelled), labels[labelled]


def name_clusters(detection: Detection, taken: Iterable[Label]) -> tuple[Ints, Array]:
    """Make up a name for each novel cluster: ``novel-1``, ``novel-2``, and so on.

    Parameters
    ----------
    detection : Detection
        Detection of the window.
    taken : iterable of labels
        Names in use, those of ``learner.classes_`` and ``learner.former_names``. Numbers go on
        after the highest of them.

    Returns
    -------
    rows, names : arrays
        Rows of all instances believed novel, and the name of each one's cluster.

    >>> found = Detection(
    ...     novelty=np.ones(4), label=np.zeros(4, int), cluster=np.array([1, -1, 0, 1]),
    ...     n_novel=2, curve={}, embedding=np.zeros((4, 1)))
    >>> rows, labels = name_clusters(found, ["cat", "dog", "novel-1"])
    >>> rows.tolist(), labels.tolist()
    ([0, 2, 3], ['novel-3', 'novel-2', 'novel-3'])
    """
    matches = [MADE_UP_NAME.fullmatch(str(label)) for label in taken]
    last = max((int(match[1]) for match in matches if match), default=0)
    rows = np.flatnonzero(detection.is_novel)
    _, position = np.unique(detection.cluster[rows], return_inverse=True)
    return rows, np.array([f"novel-{last + 1 + i}" for i in position.tolist()], dtype=str)


def check_purity(purity: Any) -> None:
    """Refuse a purity that is no share above 0."""
    if validation.number("propagate", purity, least=0.0, most=1.0) == 0:
        raise BadConfig("propagate is 0: give a share above 0, such as 0.8.")


def check_propagation(propagate: float | None, query: Query) -> None:
    """Refuse a propagation that can never happen with this query."""
    if propagate is None:
        return
    check_purity(propagate)
    if query == SELF:
        raise BadConfig(
            f"propagate is {propagate!r} and query is {SELF!r}: nobody is queried then, so there "
            "are no answers to propagate; leave one of them out."
        )
    if is_budget(query) and query < MIN_ANSWERS:
        raise BadConfig(
            f"propagate is {propagate!r} and query is {query}: a cluster needs {MIN_ANSWERS} "
            "answers before they are propagated; query more, or leave propagate out."
        )


def _check_rows(rows: Any, n: int) -> Ints:
    array = np.asarray(rows)
    if not array.size:
        return np.empty(0, dtype=np.int64)
    whole = array.ndim == 1 and array.dtype.kind in "iu"
    if not whole or array.min() < 0 or array.max() >= n:
        raise BadInput(f"rows is {rows!r}: give the numbers of rows of the window, 0 to {n - 1}.")
    if len(np.unique(array)) < len(array):
        raise BadInput(f"rows is {rows!r}: name each row once.")
    return array.astype(np.int64)


def _agreed_label(answers: Array, purity: float) -> Label | None:
    """The label that enough of the answers agree on, or None."""
    if len(answers) < MIN_ANSWERS:
        return None
    (label, count), *others = Counter(answers.tolist()).most_common(2)
    tied = bool(others) and others[0][1] == count
    return None if tied or count / len(answers) < purity else label
