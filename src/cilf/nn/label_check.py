"""A check of labels: does each agree with what the other labelled instances say?

Every instance is classified by a discriminant of the others, in folds that keep near-duplicates
together. Near-duplicates with one label are judged together. As in confident learning (Northcutt,
Jiang and Chuang, 2021), a label is in doubt if another class is more probable, and as probable as
that class usually is for its own instances. Instances that are merely hard to tell from another
class are not that sure of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from cilf.core.random import generator
from cilf.core.types import Bools, Floats, Ints
from cilf.nn.network import to_numpy
from cilf.nn.prototypes import class_means
from cilf.nn.readouts import Discriminant, weigh_scores

N_FOLDS = 5
FEWEST = 2 * N_FOLDS  # instances that can be divided into folds


@dataclass(frozen=True)
class CheckedLabels:
    """What the other instances say about the label of each.

    Attributes:
        likely: the class that the others say.
        is_doubtful: whether the label is in doubt.
    """

    likely: Ints  # (n,)
    is_doubtful: Bools  # (n,)


def check_labels(
    views: Sequence[Tensor], labels: Ints, group: Ints, is_unseen: Bools
) -> CheckedLabels:
    """Check the labels of instances with these views, which make ``group`` near-duplicates.

    How sure the others usually are is measured on ``is_unseen``, the instances that the views were
    not trained on.

    >>> points = torch.cat([torch.randn(30, 2) - 9, torch.randn(30, 2) + 9])
    >>> labels = np.repeat([0, 1], 30)
    >>> labels[:3] = 1
    >>> checked = check_labels([points], labels, np.arange(60), np.ones(60, dtype=bool))
    >>> np.flatnonzero(checked.is_doubtful).tolist()
    [0, 1, 2]
    """
    if len(labels) < FEWEST:
        return CheckedLabels(labels, np.zeros(len(labels), dtype=bool))
    scores = _average(_cross_validate(views, labels, group), labels, group)
    unseen = torch.from_numpy(labels[is_unseen])
    weight = weigh_scores([torch.from_numpy(scores[is_unseen])], unseen)[0]
    p = softmax(weight * scores, axis=1)
    rows = np.arange(len(labels))
    own = p[rows, labels]
    counts = np.bincount(labels[is_unseen], minlength=p.shape[1])
    sums = np.bincount(labels[is_unseen], own[is_unseen], minlength=p.shape[1])
    usual = sums / np.maximum(counts, 1)
    others = np.where(p >= usual, p, 0.0)
    others[rows, labels] = 0.0
    is_doubtful = others.max(1) > own
    return CheckedLabels(np.where(is_doubtful, others.argmax(1), p.argmax(1)), is_doubtful)


def _average(scores: Floats, labels: Ints, group: Ints) -> Floats:
    """The mean scores of the near-duplicates with one label, for each of them: (n, c)."""
    pairs, member = np.unique(np.stack([group, labels]), axis=1, return_inverse=True)
    member = member.ravel()
    sums = np.zeros((pairs.shape[1], scores.shape[1]), dtype=scores.dtype)
    np.add.at(sums, member, scores)
    means: Floats = (sums / np.bincount(member)[:, None])[member].astype(scores.dtype)
    return means


def _cross_validate(views: Sequence[Tensor], labels: Ints, group: Ints) -> Floats:
    """The score of each class for each instance, by a discriminant of the other folds: (n, c)."""
    n_classes = int(labels.max()) + 1
    numbers, member = np.unique(group, return_inverse=True)
    fold = generator(0, "label check").permutation(len(numbers))[member] % N_FOLDS
    scores: Floats = np.zeros((len(labels), n_classes), dtype=np.float32)
    for number in range(N_FOLDS):
        out = torch.from_numpy(fold == number)
        y = torch.from_numpy(labels).to(views[0].device)[~out]
        centres = [class_means(view[~out], y, n_classes)[0] for view in views]
        readout = Discriminant.fit([view[~out] for view in views], y, centres)
        found = to_numpy(readout.score([view[out] for view in views]))
        is_absent = np.bincount(labels[fold != number], minlength=n_classes) == 0
        found[:, is_absent] = found.min() - np.ptp(found)  # it has no centre
        scores[fold == number] = found
    return scores
