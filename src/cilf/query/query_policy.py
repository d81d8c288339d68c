"""What a person is asked about a window, and what the learner is taught from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cilf.core import Detection, Label, Window, WindowRecord, validation
from cilf.core.types import Array, Bools, Ints
from cilf.errors import BadConfig
from cilf.query.oracle import Oracle
from cilf.query.propagation import check_propagation, propagate_answers, self_taught
from cilf.query.strategies import (
    RANDOM,
    SELF,
    STRATEGIES,
    Query,
    check_query,
    choose_queries,
)

TRUE = "true"  # as n_novel: the learner is told how many novel classes there are


@dataclass(frozen=True)
class Asking:
    """How a run asks; the parts are those of :func:`cilf.evaluate.run_stream`."""

    query: Query = 1.0
    n_novel: int | str | None = None
    strategy: str = RANDOM
    propagate: float | None = None

    def __post_init__(self) -> None:
        check_query(self.query)
        _check_n_novel(self.n_novel)
        validation.one_of("strategy", self.strategy, STRATEGIES)
        if self.asks_nobody and self.strategy != RANDOM:
            raise BadConfig(
                f"strategy is {self.strategy!r} and query is {SELF!r}: nobody is asked then; leave "
                "one of them out."
            )
        check_propagation(self.propagate, self.query)

    @property
    def asks_nobody(self) -> bool:
        """Whether the learner names novel classes itself."""
        return self.query == SELF


def _check_n_novel(n_novel: int | str | None) -> None:
    if isinstance(n_novel, str):
        if n_novel != TRUE:
            raise BadConfig(f"n_novel is {n_novel!r}: give a whole number, {TRUE!r} or None.")
    elif n_novel is not None:
        validation.whole_number("n_novel", n_novel, least=0)


@dataclass(frozen=True)
class Lesson:
    """What a learner is taught after a window."""

    rows: Ints  # of the window
    labels: Array  # of these rows
    asked: Ints  # rows whose labels a person gave

    @property
    def propagated(self) -> Bools:
        """Which of the rows have a label that nobody gave."""
        return ~np.isin(self.rows, self.asked)


def lesson(
    asking: Asking, window: Window, detection: Detection, taken: Iterable[Label], seed: int
) -> Lesson:
    """Ask about a window; the truth shows only in the answers. No name is made up that is taken."""
    if asking.asks_nobody:
        return Lesson(*self_taught(detection, taken), asked=np.empty(0, dtype=np.int64))
    asked = choose_queries(
        detection, asking.query, strategy=asking.strategy, seed=seed, window=window.index
    )
    answers = Oracle(window).answer(asked)
    if asking.propagate is None:
        return Lesson(asked, answers, asked)
    return Lesson(*propagate_answers(detection, asked, answers, asking.propagate), asked=asked)


# ----------------------------------------------------------------- for the scores only


def stands_for(taught: Lesson, window: Window) -> dict[str, Label]:
    """Each name a learner made up -> the true class of most of the instances it was taught from."""
    truth = window.y[taught.rows]
    names = dict.fromkeys(taught.labels.tolist())
    return {
        name: Counter(truth[taught.labels == name].tolist()).most_common(1)[0][0] for name in names
    }


def named_in(records: Iterable[WindowRecord]) -> dict[str, Label]:
    """What the names that were made up in these windows stand for."""
    return {name: label for record in records for name, label in record.named.items()}


def true_names(labels: Array, named: Mapping[str, Label]) -> Array:
    """Labels with the true class in place of a name that the learner made up."""
    if not named:
        return labels
    return np.array([named.get(label, label) for label in labels.tolist()], dtype=str)
