"""Scores of detections and of forgetting: pure functions on arrays.

Classes are codes: ``truth`` holds 0..n_known-1 for classes the learner knows and n_known.. for
novel ones. A predicted code is a class, or ``WRONG`` where no class can be right. A score that
is undefined (an accuracy over no instance) is NaN, and means leave it out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from cilf.core import Label
from cilf.core.types import Array, Bools, Ints

WRONG = -1  # predicted code of an instance in a cluster that is matched to no class


# ----------------------------------------------------------------- from clusters to classes


def match_clusters(cluster: Ints, truth: Ints, n_known: int) -> dict[int, int]:
    """The novel class each found cluster stands for, at most one cluster for a class.

    The assignment puts as many novel instances as possible into the cluster of their class. A
    cluster that would share no instance with its class stays unmatched.

    >>> match_clusters(np.array([-1, 0, 1, 1, 1]), np.array([0, 3, 2, 2, 3]), n_known=2)
    {0: 3, 1: 2}
    """
    in_play = (cluster >= 0) & (truth >= n_known)
    clusters, row = np.unique(cluster[in_play], return_inverse=True)
    classes, column = np.unique(truth[in_play], return_inverse=True)
    shared = np.zeros((len(clusters), len(classes)), dtype=np.int64)
    np.add.at(shared, (row, column), 1)
    return {
        int(clusters[i]): int(classes[j])
        for i, j in zip(*linear_sum_assignment(shared, maximize=True), strict=True)
        if shared[i, j] > 0
    }


def resolve(label: Ints, cluster: Ints, matching: Mapping[int, int]) -> Ints:
    """Predicted codes: the known class, the class of the instance's cluster, or ``WRONG``.

    >>> resolve(np.array([1, 0, 0]), np.array([-1, 0, 1]), matching={0: 2}).tolist()
    [1, 2, -1]
    """
    predicted = np.where(cluster < 0, label, WRONG).astype(np.int64)
    for found, novel_class in matching.items():
        predicted[cluster == found] = novel_class
    return predicted


# ----------------------------------------------------------------- accuracy


def known_accuracy(truth: Ints, predicted: Ints, n_known: int) -> float:
    """AKS: share of the instances of known classes that are given their class."""
    return _share((predicted == truth)[truth < n_known])


def novel_accuracy(truth: Ints, predicted: Ints, n_known: int) -> float:
    """AUS: share of the instances of novel classes that lie in the cluster of their class."""
    return _share((predicted == truth)[truth >= n_known])


def normalized_accuracy(truth: Ints, predicted: Ints, n_known: int) -> float:
    """NA: half the accuracy on known, half that on novel classes; NaN without either."""
    known = known_accuracy(truth, predicted, n_known)
    return 0.5 * known + 0.5 * novel_accuracy(truth, predicted, n_known)


def harmonic_accuracy(truth: Ints, predicted: Ints, n_known: int) -> float:
    """H: harmonic mean of the accuracies on known and on novel classes; NaN without either.

    A learner that finds nothing novel has NA of half its accuracy on known classes, and H of 0.

    >>> harmonic_accuracy(np.array([0, 0, 2]), np.array([0, 0, 1]), n_known=2)
    0.0
    """
    known = known_accuracy(truth, predicted, n_known)
    novel = novel_accuracy(truth, predicted, n_known)
    return 0.0 if known + novel == 0 else 2 * known * novel / (known + novel)


# ----------------------------------------------------------------- F


def macro_f(truth: Ints, predicted: Ints) -> float:
    """Mean over the classes present of each one's F."""
    found = _counts(truth, predicted, np.unique(truth))
    return mean(2 * found.right / (2 * found.right + found.false + found.missed))


def micro_f(truth: Ints, predicted: Ints) -> float:
    """F of the outcomes summed over the classes present."""
    return _pooled_f(_counts(truth, predicted, np.unique(truth)))


def open_macro_f(truth: Ints, predicted: Ints, n_known: int) -> float:
    """Open-set macro-F: the F of precision and recall averaged over the known classes present.

    Novel instances have no class of their own here, but spoil the precision of the known class
    they are given to.
    """
    found = _counts(truth, predicted, np.unique(truth[truth < n_known]))
    precision = mean(found.right / np.maximum(found.right + found.false, 1))
    recall = mean(found.right / (found.right + found.missed))
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


def open_micro_f(truth: Ints, predicted: Ints, n_known: int) -> float:
    """Open-set micro-F: outcomes summed over the known classes present."""
    return _pooled_f(_counts(truth, predicted, np.unique(truth[truth < n_known])))


class _Counts(NamedTuple):
    """Counts per class; no class has all of them zero, for each one is present."""

    right: Ints  # (n_classes,) instances of the class that are given it
    false: Ints  # instances of others that are given it
    missed: Ints  # instances of the class that are not given it


def _counts(truth: Ints, predicted: Ints, classes: Ints) -> _Counts:
    is_class = truth[:, None] == classes  # (n, n_classes)
    given = predicted[:, None] == classes
    cases = (is_class & given, ~is_class & given, is_class & ~given)
    return _Counts(*(case.sum(axis=0) for case in cases))


def _pooled_f(found: _Counts) -> float:
    right, errors = int(found.right.sum()), int(found.false.sum() + found.missed.sum())
    return 2 * right / (2 * right + errors) if right + errors else math.nan


# ----------------------------------------------------------------- known against novel


def auroc(novelty: npt.NDArray[np.floating], is_novel: Bools) -> float:
    """Probability that a novel instance scores higher than a known one; a tie counts half.

    >>> auroc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    n_novel = int(is_novel.sum())
    n_pairs = n_novel * (len(is_novel) - n_novel)
    if n_pairs == 0:
        return math.nan
    ranks_of_novel = float(rankdata(novelty)[is_novel].sum())
    return (ranks_of_novel - n_novel * (n_novel + 1) / 2) / n_pairs


def known_auroc(novelty: npt.NDArray[np.floating], truth: Ints, n_known: int) -> float:
    """AUROC of each known class present against all novel instances, averaged over classes."""
    is_novel = truth >= n_known
    sides = [is_novel | (truth == known) for known in np.unique(truth[~is_novel])]
    return mean(auroc(novelty[side], is_novel[side]) for side in sides)


def missed_novel(truth: Ints, cluster: Ints, n_known: int) -> float:
    """M_new: share of the novel instances that are called known."""
    return _share((cluster < 0)[truth >= n_known])


def false_novel(truth: Ints, cluster: Ints, n_known: int) -> float:
    """F_new: share of the instances of known classes that are called novel."""
    return _share((cluster >= 0)[truth < n_known])


# ----------------------------------------------------------------- forgetting


def group_accuracy(
    y: Array, predicted: Array, arrivals: Mapping[Label, int], window: int
) -> dict[int, float]:
    """Accuracy on each group of classes that arrived together, up to this window.

    ``y`` and ``predicted`` hold labels, ``arrivals`` the window of arrival of each class (0 =
    initial). Classes that are yet to come, or never come, are left out.

    >>> y, predicted = np.array(["a", "a", "b", "c"]), np.array(["a", "b", "b", "a"])
    >>> group_accuracy(y, predicted, {"a": 0, "b": 1, "c": 2}, window=1)
    {0: 0.5, 1: 1.0}
    """
    group = np.array([arrivals.get(label, window + 1) for label in y.tolist()], dtype=np.int64)
    right = np.asarray(predicted == y)
    return {int(g): _share(right[group == g]) for g in np.unique(group[group <= window])}


def group_sizes(y: Array, arrivals: Mapping[Label, int], window: int) -> dict[int, int]:
    """Number of classes in each group of ``group_accuracy``.

    >>> group_sizes(np.array(["a", "a", "b", "c", "d"]), {"a": 0, "b": 1, "c": 1, "d": 2}, window=1)
    {0: 1, 1: 2}
    """
    came = Counter(arrivals.get(label, window + 1) for label in np.unique(y).tolist())
    return {group: n for group, n in sorted(came.items()) if group <= window}


def mean_over_classes(accuracy: Mapping[int, float], sizes: Mapping[int, int]) -> float:
    """Mean over classes of the accuracy of their group; undefined accuracies are left out.

    >>> mean_over_classes({0: 0.5, 1: 1.0}, sizes={0: 3, 1: 1})
    0.625
    """
    defined = {group: value for group, value in accuracy.items() if not math.isnan(value)}
    total = sum(sizes[group] for group in defined)
    weighted = sum(sizes[group] * value for group, value in defined.items())
    return weighted / total if total else math.nan


def forgetting(
    holdout: Sequence[Mapping[int, float]], joint: Sequence[Mapping[int, float]]
) -> float:
    """Share of the accuracy of ``joint`` that a learner lacks, in the mean over updates.

    Both hold one ``group_accuracy`` for each update, made on the same stream. NaN when there
    is none, or when ``joint`` is never right.

    >>> forgetting([{0: 0.5}, {0: 0.0, 1: 0.5}], joint=[{0: 0.5}, {0: 0.5, 1: 0.5}])
    0.25
    """
    best = _mean_accuracy(joint)
    return (best - _mean_accuracy(holdout)) / best if best else math.nan


def forgetting_by_update(
    holdout: Sequence[Mapping[int, float]], joint: Sequence[Mapping[int, float]]
) -> list[float]:
    """The forgetting of each update. The mean of these is ``forgetting``.

    >>> forgetting_by_update([{0: 0.5}, {0: 0.0, 1: 0.5}], joint=[{0: 0.5}, {0: 0.5, 1: 0.5}])
    [0.0, 0.5]
    """
    best = _mean_accuracy(joint)
    return [(best - mean(r.values())) / best if best else math.nan for r in holdout]


def forgetting_from_best(holdout: Sequence[Mapping[int, float]]) -> float:
    """Mean over the groups of the best accuracy a group ever had minus its last one.

    >>> forgetting_from_best([{0: 0.75}, {0: 0.25, 1: 1.0}])
    0.25
    """
    groups = sorted({group for record in holdout for group in record})
    courses = [[record[g] for record in holdout if g in record] for g in groups]
    return mean(max(course) - course[-1] for course in courses)


def _mean_accuracy(holdout: Sequence[Mapping[int, float]]) -> float:
    return mean(mean(record.values()) for record in holdout)


def _share(hits: Bools) -> float:
    return float(hits.mean()) if len(hits) else math.nan


def mean(values: Iterable[float]) -> float:
    """The mean of the values that are defined; NaN if none is.

    >>> mean([1.0, float("nan"), 2.0])
    1.5
    """
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan
