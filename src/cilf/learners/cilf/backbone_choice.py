"""The backbone of ``auto``: of two, the one that finds hidden classes again.

Some known classes are hidden. The learner is fitted on the others with each backbone, and detects
in a window of fresh instances of all. The hidden classes stand for the novel classes of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from cilf.core import Detection, progress
from cilf.core.notices import warn_once
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.errors import CilfError
from cilf.learners.base import Learner
from cilf.learners.cilf.readout import LDA
from cilf.nn.pretrained import is_frozen

MIN_CLASSES, MAX_CLASSES = 4, 10  # with fewer no two are left to know; of more, some take part
MIN_CLASS_SIZE = 9  # instances of a class: three in the window, and six to learn from
MIN_INSTANCES = 300  # of these classes; with fewer the choice takes more than twice the fit
WINDOW_SIZE = 20  # instances of a class in the window
ENCODED_SIZE = 60  # instances of a class that a frozen network sees, since it is slow
ENCODED_SHARE = 0.5  # of all instances that it sees at most
HIDDEN_SHARE = 0.4  # of the classes
N_SPLITS = 3
EPOCHS_SHARE = 0.25  # of those of the fit; twice as many rank the backbones alike
SCRATCH = "convnet"
PREFIX = "backbone"  # of the stages of the progress
TOO_FEW = (
    f"backbone: a choice by evidence takes {MIN_INSTANCES} labelled instances, in {MIN_CLASSES} "
    f"classes of {MIN_CLASS_SIZE} or more, so auto goes by the form of the images."
)


class Split(NamedTuple):
    """The classes that are hidden in a trial, and the instances that take part."""

    hidden: Ints
    window: Ints  # rows
    some: Ints  # rows to learn from, for a frozen network
    all: Ints  # rows to learn from, for a network that is trained from scratch


def compare(learner: Learner, X: Array, y: Ints, network: str) -> dict[str, float]:
    """The mean H over the splits, from scratch and with a frozen network.

    The number of hidden classes is given, so that only their recovery counts. First comes what the
    form of the images speaks for: a frozen network if they are in colour.
    """
    is_in_colour = X.ndim == 4 and X.shape[3] == 3
    splits = list(split_classes(y, learner.seed))
    with progress.within(PREFIX):
        return {
            backbone: float(np.mean([_try(learner, backbone, X, y, split) for split in splits]))
            for backbone in ((network, SCRATCH) if is_in_colour else (SCRATCH, network))
        }


def choose(found: Mapping[str, float]) -> str:
    """The best of two backbones, the first of equally good ones; a notice says why."""
    chosen, other = sorted(found, key=lambda backbone: -found[backbone])
    warn_once(
        f"backbone: {chosen}, which finds hidden classes again with H = {found[chosen]:.2f} "
        f"({other}: {found[other]:.2f}); backbone={other!r} overrides."
    )
    return chosen


def has_enough(y: Ints) -> bool:
    """Whether there are enough instances, in enough classes, for a comparison."""
    sizes = np.bincount(y)
    large = sizes[sizes >= MIN_CLASS_SIZE]
    return len(large) >= MIN_CLASSES and int(large.sum()) >= MIN_INSTANCES


def split_classes(y: Ints, seed: int) -> Iterator[Split]:
    """Several ways to hide some of the classes.

    The rows of a class have the same order in all of them. So a frozen network sees few instances.
    """
    rng = generator(seed, "backbone")
    large = np.flatnonzero(np.bincount(y) >= MIN_CLASS_SIZE)
    classes = rng.permutation(large)[:MAX_CLASSES]
    rows = {label: rng.permutation(np.flatnonzero(y == label)) for label in classes.tolist()}
    n_hidden = int(HIDDEN_SHARE * len(classes))
    n_encoded = min(ENCODED_SIZE, int(ENCODED_SHARE * len(y) / len(classes)))
    for number in range(N_SPLITS):
        hidden = np.roll(classes, number * n_hidden)[:n_hidden]
        novel = [rows[label][: min(WINDOW_SIZE, n_encoded)] for label in hidden.tolist()]
        known = [own for label, own in rows.items() if label not in hidden]
        n_window = [min(WINDOW_SIZE, n_encoded // 3, len(own) // 3) for own in known]
        fresh = [own[:n] for own, n in zip(known, n_window, strict=True)]
        some = [own[n:n_encoded] for own, n in zip(known, n_window, strict=True)]
        rest = [own[n:] for own, n in zip(known, n_window, strict=True)]
        yield Split(
            hidden,
            window=np.concatenate([*fresh, *novel]),
            some=np.concatenate(some),
            all=np.concatenate(rest),
        )


def _try(learner: Learner, backbone: str, X: Array, y: Ints, split: Split) -> float:
    """H of this learner with this backbone in the window of the split.

    The readout is LDA: it is learned quickly, and no readout decides what is novel.
    """
    epochs = learner.get_params()["epochs"]
    trial = type(learner)(**learner.get_params(deep=False))
    trial.set_params(
        backbone=backbone, epochs=int(np.ceil(EPOCHS_SHARE * epochs)), readout=LDA,
        training__devices=1,  # a trial is over before other processes have started
    )  # fmt: skip
    rows = split.some if is_frozen(backbone) else split.all
    try:
        trial.fit(X[rows], y[rows])
        found = trial.detect(X[split.window], n_novel=len(split.hidden))
    except CilfError as error:  # such as training that diverges; the other one may do better
        warn_once(f"backbone {backbone!r} found nothing in a trial: {error}")
        return 0.0
    return measure_recovery(found, y[split.window], split.hidden)


def measure_recovery(found: Detection, truth: Ints, hidden: Ints) -> float:
    """H: harmonic mean of the accuracies on known and on hidden classes.

    Each hidden class is matched with at most one cluster.
    """
    from scipy.optimize import linear_sum_assignment  # a quarter of a second to import

    is_hidden = np.isin(truth, hidden)
    is_known_right = ~found.is_novel & (found.label == truth)
    known = float(is_known_right[~is_hidden].mean())
    shared = np.zeros((len(hidden), max(1, found.n_novel)), dtype=np.int64)
    in_cluster = is_hidden & found.is_novel
    rows = np.searchsorted(np.sort(hidden), truth[in_cluster])
    np.add.at(shared, (rows, found.cluster[in_cluster]), 1)
    novel = float(shared[linear_sum_assignment(shared, maximize=True)].sum() / is_hidden.sum())
    return 0.0 if known + novel == 0 else 2 * known * novel / (known + novel)
