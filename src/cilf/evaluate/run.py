"""The loop: detect, score, ask, update, measure; one step for each window of a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cilf.core import Detection, Label, Window, WindowRecord, validation
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.evaluate import metrics
from cilf.evaluate.journal import Journal
from cilf.learners import Learner
from cilf.stream import Oracle, Stream
from cilf.stream.oracle import choose_queries

TRUE = "true"  # as n_novel: the learner is told how many novel classes there are

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """One window, what was believed about it, and how right that was."""

    window: Window
    detection: Detection
    novel: tuple[Label, ...]  # classes in the window that the learner had never been told about
    matching: Mapping[int, Label]  # found cluster -> the novel class it stands for
    queried: Ints  # rows of the window whose labels were asked for
    record: WindowRecord


def run_stream(
    learner: Learner,
    stream: Stream,
    query: float = 1.0,
    n_novel: int | str | None = None,
    resume: str | Path | None = None,
) -> Iterator[WindowRecord]:
    """Fit a learner on the start of a stream, then yield one record for each window.

    Args:
        learner: is fitted afresh on ``stream.initial``.
        stream: its windows come in order; the learner never sees the hold-out set, nor labels
            that were not asked for.
        query: share of the instances believed novel whose labels are asked for.
        n_novel: None has the learner find the number of novel classes; an int is handed to it
            in every window, "true" hands it the true number.
        resume: a folder that keeps records and the learner after each window. If it already
            holds some, their records come first, and a *copy* of the learner read from there
            goes on; ``learner`` itself then stays as it is.

    What it does, but for the scores, the timing and the folder:

        >>> from cilf.data import load_dataset
        >>> from cilf.learners.iforest import IForest
        >>> from cilf.stream import multiple_novel
        >>> from cilf.stream.oracle import choose_queries
        >>> stream = multiple_novel(load_dataset("digits"), n_windows=2)
        >>> learner = IForest().fit(*stream.initial)
        >>> for window in stream:
        ...     found = learner.detect(window.X)
        ...     rows = choose_queries(found, 1.0, seed=stream.seed, window=window.index)
        ...     if len(rows):
        ...         learner = learner.update(window.X[rows], window.y[rows])
        ...     right = learner.predict(stream.holdout.X) == stream.holdout.y

    And with them:

        >>> [record.n_novel_true for record in run_stream(IForest(), stream)]
        [2, 2]
    """
    check_asking(query, n_novel)  # now, not when the first record is asked for
    if resume is None:
        return _records(learner, stream, query, n_novel)
    return _kept_records(learner, stream, query, n_novel, Path(resume))


def _records(
    learner: Learner, stream: Stream, query: float, n_novel: int | str | None
) -> Iterator[WindowRecord]:
    learner.fit(*stream.initial)
    for step in steps(learner, stream, query, n_novel):
        yield step.record


def _kept_records(
    learner: Learner, stream: Stream, query: float, n_novel: int | str | None, folder: Path
) -> Iterator[WindowRecord]:
    journal = Journal.begin(folder, learner, stream)
    yield from journal.finished
    for step in steps(journal.learner, stream, query, n_novel, done=len(journal.finished)):
        journal.keep(step.record)
        yield step.record


def steps(
    learner: Learner,
    stream: Stream,
    query: float = 1.0,
    n_novel: int | str | None = None,
    *,
    done: int = 0,
) -> Iterator[Step]:
    """What :func:`run_stream` does to a *fitted* learner, with all there is to draw of it.

    The first ``done`` windows are behind the learner already.
    """
    check_asking(query, n_novel)
    for index in range(done + 1, len(stream) + 1):
        yield _step(learner, stream, stream.window(index), query, n_novel)


def check_asking(query: float, n_novel: int | str | None) -> None:
    """Refuse a share to ask for, or a number of novel classes, that cannot be."""
    validation.number("query", query, least=0.0, most=1.0)
    if isinstance(n_novel, str):
        if n_novel != TRUE:
            raise BadConfig(f"n_novel is {n_novel!r}: give a whole number, {TRUE!r} or None.")
    elif n_novel is not None:
        validation.whole_number("n_novel", n_novel, least=0)


def _step(
    learner: Learner, stream: Stream, window: Window, query: float, n_novel: int | str | None
) -> Step:
    known: list[Label] = learner.classes_.tolist()
    novel = validation.in_order_of_appearance(window.y, known)
    asked_for = len(novel) if isinstance(n_novel, str) else n_novel
    detection, seconds_detect = _timed(lambda: learner.detect(window.X, n_novel=asked_for))
    scores, matching = _scores(window, detection, known, novel)

    queried = choose_queries(detection, query, seed=stream.seed, window=window.index)
    answers = Oracle(window).answer(queried)
    _, seconds_update = _timed(lambda: _taught(learner, window.X[queried], answers))

    record = WindowRecord(
        window=window.index,
        n_known=len(known),
        n_novel_true=len(novel),
        n_novel_found=detection.n_novel,
        **scores,
        holdout_accuracy=_holdout_accuracy(learner, stream, window.index),
        n_queried=len(queried),
        seconds_detect=seconds_detect,
        seconds_update=seconds_update,
    )
    return Step(window, detection, tuple(novel), matching, queried, record)


def _taught(learner: Learner, X: Array, y: Array) -> Learner:
    return learner.update(X, y) if len(y) else learner


def _holdout_accuracy(learner: Learner, stream: Stream, window: int) -> dict[int, float]:
    predicted = learner.predict(stream.holdout.X)
    return metrics.group_accuracy(stream.holdout.y, predicted, stream.plan.arrivals, window)


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _scores(
    window: Window, detection: Detection, known: Sequence[Label], novel: Sequence[Label]
) -> tuple[dict[str, Any], dict[int, Label]]:
    """The scores of a detection by their names in the record, and what each cluster stands for."""
    classes = [*known, *novel]
    code = {label: i for i, label in enumerate(classes)}
    truth = np.array([code[label] for label in window.y.tolist()], dtype=np.int64)
    label = np.array([code[label] for label in detection.label.tolist()], dtype=np.int64)
    n_known = len(known)
    matching = metrics.match_clusters(detection.cluster, truth, n_known)
    predicted = metrics.resolve(label, detection.cluster, matching)
    of_known = truth < n_known
    scores = {
        "na": metrics.normalized_accuracy(truth, predicted, n_known),
        "macro_f": metrics.macro_f(truth, predicted),
        "micro_f": metrics.micro_f(truth, predicted),
        "auroc": metrics.auroc(detection.novelty, ~of_known),
        "known_na": metrics.known_accuracy(truth, predicted, n_known),
        "known_macro_f": metrics.macro_f(truth[of_known], predicted[of_known]),
        "known_micro_f": metrics.micro_f(truth[of_known], predicted[of_known]),
        "known_auroc": metrics.known_auroc(detection.novelty, truth, n_known),
        "open_macro_f": metrics.open_macro_f(truth, predicted, n_known),
        "open_micro_f": metrics.open_micro_f(truth, predicted, n_known),
        "m_new": metrics.missed_novel(truth, detection.cluster, n_known),
        "f_new": metrics.false_novel(truth, detection.cluster, n_known),
    }
    return scores, {cluster: classes[position] for cluster, position in matching.items()}
