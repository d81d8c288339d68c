"""The query policy of a run: what is queried in a window, and which labels the learner gets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cilf.core import Detection, Label, Window, validation
from cilf.core.types import Array, Bools, Ints
from cilf.errors import BadConfig
from cilf.query.budget import SELF, Query, check_query
from cilf.query.oracle import Oracle
from cilf.query.propagation import check_propagation, name_clusters, propagate_answers
from cilf.query.strategies import RANDOM, STRATEGIES, choose_queries

TRUE = "true"  # as n_novel: the learner is handed the true number of novel classes
FOUND, GIVEN = PROTOCOLS = ("found", "given")


@dataclass(frozen=True)
class LabelledRows:
    """The rows of a window that have a label after the query, and where it comes from."""

    rows: Ints
    labels: Array  # of these rows
    queried: Ints  # the rows whose label a person gave

    @property
    def propagated(self) -> Bools:
        """Whether the label of each row was propagated, not given by a person."""
        return ~np.isin(self.rows, self.queried)


@dataclass(frozen=True)
class QueryPolicy:
    """The query policy of a run. Its fields are arguments of :func:`cilf.evaluate.run_stream`."""

    query: Query = 1.0
    n_novel: int | str | None = None
    strategy: str = RANDOM
    propagate: float | None = None
    protocol: str = FOUND

    def __post_init__(self) -> None:
        validation.one_of("protocol", self.protocol, PROTOCOLS)
        check_query(self.query)
        _check_n_novel(self.n_novel)
        validation.one_of("strategy", self.strategy, STRATEGIES)
        if self.is_self and self.strategy != RANDOM:
            raise BadConfig(
                f"strategy is {self.strategy!r} and query is {SELF!r}: nobody is queried then; "
                "leave one of them out."
            )
        check_propagation(self.propagate, self.query)
        if self.is_given:
            self._require_no_query()

    def _require_no_query(self) -> None:
        """Refuse settings of a query or a detection, which the protocol "given" does not make."""
        for name in ("query", "n_novel", "strategy", "propagate"):
            value = getattr(self, name)
            if repr(value) != repr(getattr(QueryPolicy, name)):
                raise BadConfig(
                    f"protocol is {GIVEN!r} and {name} is {value!r}: every novel instance is "
                    f"handed over with its label then; leave {name} out."
                )

    @property
    def is_given(self) -> bool:
        """Whether the learner is handed the labelled novel instances, and detects nothing."""
        return self.protocol == GIVEN

    @property
    def is_self(self) -> bool:
        """Whether nobody is queried and every cluster becomes a class with a made-up name."""
        return self.query == SELF

    def label_window(
        self, window: Window, detection: Detection, taken: Iterable[Label], seed: int
    ) -> LabelledRows:
        """Query a window and label its rows from the answers.

        Args:
            window: The window. Its true labels are seen only where they are queried.
            detection: What the learner believes about the window.
            taken: The names that no made-up name may repeat.
            seed: The seed of random choices.
        """
        if self.is_given:
            novel = np.array(window.novel, dtype=window.y.dtype)
            return label_rows(window, np.flatnonzero(np.isin(window.y, novel)))
        if self.is_self:
            return LabelledRows(*name_clusters(detection, taken), queried=np.empty(0, np.int64))
        rows = choose_queries(
            detection, self.query, strategy=self.strategy, seed=seed, window=window.index
        )
        answered = label_rows(window, rows)
        if self.propagate is None:
            return answered
        labelled = propagate_answers(detection, rows, answered.labels, self.propagate)
        return LabelledRows(*labelled, queried=rows)


def label_rows(window: Window, rows: Ints) -> LabelledRows:
    """These rows of a window with their true labels."""
    return LabelledRows(rows, Oracle(window).answer(rows), queried=rows)


def _check_n_novel(n_novel: int | str | None) -> None:
    if isinstance(n_novel, str):
        if n_novel != TRUE:
            raise BadConfig(f"n_novel is {n_novel!r}: give a whole number, {TRUE!r} or None.")
    elif n_novel is not None:
        validation.whole_number("n_novel", n_novel, least=0)
