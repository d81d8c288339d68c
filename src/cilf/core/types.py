"""The values that travel between learners, streams and evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Label = int | str
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Labelled(NamedTuple):
    """Instances and their labels."""

    X: Array  # (n, ...)
    y: Array  # (n,)


@dataclass(frozen=True)
class Window:
    """One window of a stream, with the true labels that only the evaluation may see."""

    index: int  # 1, 2, ... (0 is the initial training data)
    X: Array  # (n, ...)
    y: Array  # (n,) true labels, for answers to queries and for scores
    novel: tuple[Label, ...]  # classes that start in this window
    known: tuple[Label, ...]  # classes that came earlier and are still around
    ids: Array = field(default_factory=lambda: np.empty(0, dtype=str))
    """(n,) identity of each instance in its data set; row numbers if none are given."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.y):
            object.__setattr__(self, "ids", np.arange(len(self.y)).astype(str))


@dataclass(frozen=True)
class Detection:
    """The result of ``detect`` on a window.

    Attributes:
        novelty: The novelty score of each instance; higher is more novel.
        label: The known class that each instance belongs to or is nearest to.
        cluster: -1 for known instances, 0..n_novel-1 for instances of novel clusters.
        n_novel: The number of novel clusters, found or given.
        curve: The cluster validity for every number of novel clusters that was tried.
        embedding: The place of each instance in the learner's space.
        count_probability: The probability of each number of novel classes; it sums to one. A
            learner that does not estimate it is certain of ``n_novel``.
        novelty_p: The p-value of each instance alone: a known instance falls below ``p`` with
            probability ``p``. It does not depend on the window, unlike ``novelty``. Every
            ``detect`` has it.

    >>> found = Detection(
    ...     novelty=np.array([0.1, 0.9]), label=np.array(["cat", "cat"]),
    ...     cluster=np.array([-1, 0]), n_novel=1, curve={}, embedding=np.zeros((2, 3)))
    >>> found.is_novel.tolist()
    [False, True]
    """

    novelty: Floats  # (n,)
    label: Array  # (n,)
    cluster: Ints  # (n,)
    n_novel: int
    curve: Mapping[int, float]
    embedding: Floats  # (n, d)
    count_probability: Mapping[int, float] = field(default_factory=dict)
    novelty_p: Floats = field(default_factory=lambda: np.empty(0, dtype=np.float32))  # (n,)

    def __post_init__(self) -> None:
        if not self.count_probability:
            object.__setattr__(self, "count_probability", {self.n_novel: 1.0})

    @property
    def is_novel(self) -> Bools:
        """Whether each instance belongs to a novel cluster."""
        return np.asarray(self.cluster >= 0)

    def __len__(self) -> int:
        return len(self.cluster)


@dataclass(frozen=True)
class WindowRecord:
    """The scores of one window; a metric that is undefined there is NaN.

    ``known_*`` are the metrics on instances of known classes only, ``open_*`` the open-set F
    (over known classes, with novel instances counted as errors when they are called known).

    Known and novel have two readings. The fields follow the learner: a class is novel until the
    learner knows it. ``extra`` has each metric a second time, as ``plan_na``, ``plan_h``, ...,
    which follow the plan of the stream: a class is novel in the window in which it starts, and
    known afterwards. Only the second reading is the same for every learner.
    """

    window: int
    n_known: int  # classes the learner knew when the window came
    n_novel_true: int  # classes in the window that the learner did not know
    n_novel_planned: int  # classes that start in the window
    n_novel_found: int | None  # None if nothing was detected (protocol "given")
    h: float  # harmonic mean of aks and aus
    aks: float  # accuracy on instances of known classes
    aus: float  # accuracy on instances of novel classes
    na: float  # mean of aks and aus
    macro_f: float
    micro_f: float
    auroc: float
    known_macro_f: float
    known_micro_f: float
    known_auroc: float
    open_macro_f: float
    open_micro_f: float
    m_new: float  # share of novel instances called known
    f_new: float  # share of known instances called novel
    holdout_accuracy: Mapping[int, float]  # window of arrival (0 = initial) -> accuracy
    holdout_classes: Mapping[int, int]  # window of arrival -> number of classes
    n_queried: int
    seconds_detect: float
    seconds_update: float
    n_propagated: int = 0  # instances with a label that no person gave
    propagated_right: float = math.nan  # share of these labels that are true
    named: Mapping[str, Label] = field(default_factory=dict)
    """Names that were made up for clusters of this window -> the true class of most of their
    instances. Scores take the name for that class from then on."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Metrics that have no field of their own, by name."""

    @property
    def known_na(self) -> float:
        """NA on instances of known classes alone, which is their accuracy."""
        return self.aks

    def metric(self, name: str) -> float:
        """The value of a metric, a field or one of ``extra``; NaN if the record lacks it."""
        return float(getattr(self, name, self.extra.get(name, math.nan)))

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary with null where a value is undefined and text as every key."""
        return {name: _to_plain(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> WindowRecord:
        """The record that ``to_json`` made this dictionary from."""
        values = {
            name: value if name in _COUNTS else _nan(value)
            for name, value in plain.items()
            if name not in _MAPPINGS
        }
        for name, key in _MAPPINGS.items():
            values[name] = {key(k): _nan(value) for k, value in plain[name].items()}
        return cls(**values)


_COUNTS = ("n_novel_found",)  # null stays None
_MAPPINGS: dict[str, Callable[[str], Any]] = {
    "holdout_accuracy": int,
    "holdout_classes": int,
    "named": str,
    "extra": str,
}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _null(each) for key, each in value.items()}
    return _null(value)


def _null(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _nan(value: Any) -> Any:
    return math.nan if value is None else value
