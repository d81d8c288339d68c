"""The loop: detect, score, ask, update, measure; one step for each window of a stream."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cilf.core import Detection, Label, Window, WindowRecord, validation
from cilf.core.files import make_folder, replace_file
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.evaluate import metrics
from cilf.evaluate.checkpoint import Journal
from cilf.evaluate.metric_table import Outcome, window_scores
from cilf.evaluate.metrics import mean
from cilf.learners import Learner
from cilf.query.query_policy import Asking, Lesson, lesson, named_in, stands_for, true_names
from cilf.query.strategies import RANDOM, Query
from cilf.stream import Stream

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """One window, what was believed about it, and how right that was."""

    window: Window
    detection: Detection
    label: Array  # (n,) the detection's, with true classes for names the learner made up
    novel: tuple[Label, ...]  # classes in the window that the learner had never been told about
    matching: Mapping[int, Label]  # found cluster -> the novel class it stands for
    queried: Ints  # rows of the window whose labels were asked for
    record: WindowRecord


def run_stream(
    learner: Learner,
    stream: Stream,
    query: Query = 1.0,
    n_novel: int | str | None = None,
    resume: str | Path | None = None,
    strategy: str = RANDOM,
    propagate: float | None = None,
) -> Iterator[WindowRecord]:
    """Fit a learner on the start of a stream, then yield one record for each window.

    Args:
        learner: is fitted afresh on ``stream.initial``.
        stream: its windows come in order; the learner never sees the hold-out set, nor labels
            that were not asked for.
        query: how many labels to ask for. A float is a share of the instances believed novel, an
            int a budget for each novel cluster: 1.0 asks for all, 1 for one of each cluster.
            "self" asks for none: every cluster becomes a class ``novel-1``, ``novel-2``, ..., and
            labels that are whole numbers reach the learner as text.
        n_novel: None has the learner find the number of novel classes; an int is handed to it
            in every window, "true" hands it the true number.
        resume: a folder that keeps records and the learner after each window. If it already
            holds some, their records come first, and a *copy* of the learner read from there
            goes on; ``learner`` itself then stays as it is.
        strategy: which instances to ask about: "random", "representative", "uncertain" or
            "mixed"; see :func:`cilf.stream.choose_queries`.
        propagate: None, or the share of a cluster's answers that have to agree for the rest of
            the cluster to be taught under the same label; see
            :func:`cilf.stream.propagate_answers`.

    What it does, but for the scores, the timing and the folder:

        >>> from cilf.data import load_dataset
        >>> from cilf.learners.iforest import IForest
        >>> from cilf.query import choose_queries
        >>> from cilf.stream import multiple_novel
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
    asking = Asking(query, n_novel, strategy, propagate)  # now, not with the first record
    if resume is None:
        return _records(learner, stream, asking)
    return _kept_records(learner, stream, asking, Path(resume))


def _records(learner: Learner, stream: Stream, asking: Asking) -> Iterator[WindowRecord]:
    learner.fit(*shown_stream(stream, asking).initial)
    for step in steps(learner, stream, asking):
        yield step.record


def _kept_records(
    learner: Learner, stream: Stream, asking: Asking, folder: Path
) -> Iterator[WindowRecord]:
    _ask_as_before(folder, asking)
    journal = Journal.begin(folder, learner, shown_stream(stream, asking))
    yield from journal.finished
    for step in steps(journal.learner, stream, asking, finished=journal.finished):
        journal.keep(step.record)
        yield step.record


def _ask_as_before(folder: Path, asking: Asking) -> None:
    """Note in the folder how the run asks; refuse to go on with a run that asked otherwise."""
    path, now = folder / "asking.json", dataclasses.asdict(asking)
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else now
    for name, value in now.items():
        if before.get(name) != value or type(before.get(name)) is not type(value):
            raise BadConfig(
                f"{name} is {value!r}, but {before.get(name)!r} in {path}: resume with the same, "
                "or start in a new folder."
            )
    make_folder(folder)
    replace_file(path, json.dumps(now).encode())


def steps(
    learner: Learner,
    stream: Stream,
    asking: Asking | None = None,
    *,
    finished: Sequence[WindowRecord] = (),
) -> Iterator[Step]:
    """What :func:`run_stream` does to a *fitted* learner, with all there is to draw of it.

    The windows of the ``finished`` records are behind the learner already.
    """
    asking = asking or Asking()
    shown, named = shown_stream(stream, asking), named_in(finished)
    for index in range(len(finished) + 1, len(shown) + 1):
        step = _step(learner, shown, shown.window(index), asking, named)
        named |= step.record.named
        yield step


def _step(
    learner: Learner, stream: Stream, window: Window, asking: Asking, named: dict[str, Label]
) -> Step:
    known: list[Label] = list(dict.fromkeys(true_names(learner.classes_, named).tolist()))
    novel = validation.in_order_of_appearance(window.y, known)
    asked_for = len(novel) if isinstance(asking.n_novel, str) else asking.n_novel
    detection, seconds_detect = _timed(lambda: learner.detect(window.X, n_novel=asked_for))
    label = true_names(detection.label, named)
    scores, matching = _scores(window, detection, label, known, novel)

    taken = [*learner.classes_.tolist(), *learner.former_names]
    taught = lesson(asking, window, detection, taken, stream.seed)
    _, seconds_update = _timed(lambda: _taught(learner, window.X[taught.rows], taught.labels))

    made = stands_for(taught, window) if asking.asks_nobody else {}
    record = WindowRecord(
        window=window.index,
        n_known=len(known),
        n_novel_true=len(novel),
        n_novel_found=detection.n_novel,
        **_as_fields(scores),
        holdout_accuracy=_holdout_accuracy(learner, stream, window.index, named | made),
        holdout_classes=metrics.group_sizes(stream.holdout.y, stream.plan.arrivals, window.index),
        n_queried=len(taught.asked),
        seconds_detect=seconds_detect,
        seconds_update=seconds_update,
        n_propagated=int(taught.propagated.sum()),
        propagated_right=_propagated_right(taught, window, made),
        named=made,
    )
    return Step(window, detection, label, tuple(novel), matching, taught.asked, record)


def _taught(learner: Learner, X: Array, y: Array) -> Learner:
    return learner.update(X, y) if len(y) else learner


def _holdout_accuracy(
    learner: Learner, stream: Stream, window: int, named: Mapping[str, Label]
) -> dict[int, float]:
    predicted = true_names(learner.predict(stream.holdout.X), named)
    return metrics.group_accuracy(stream.holdout.y, predicted, stream.plan.arrivals, window)


def _propagated_right(taught: Lesson, window: Window, made: Mapping[str, Label]) -> float:
    right = true_names(taught.labels, made) == window.y[taught.rows]
    return mean(right[taught.propagated].tolist())


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _scores(
    window: Window,
    detection: Detection,
    label: Array,
    known: Sequence[Label],
    novel: Sequence[Label],
) -> tuple[dict[str, Any], dict[int, Label]]:
    """The scores of a detection by their names in the record, and what each cluster stands for."""
    classes = [*known, *novel]
    code = {label: i for i, label in enumerate(classes)}
    truth = np.array([code[label] for label in window.y.tolist()], dtype=np.int64)
    believed = np.array([code[name] for name in label.tolist()], dtype=np.int64)
    n_known = len(known)
    matching = metrics.match_clusters(detection.cluster, truth, n_known)
    predicted = metrics.resolve(believed, detection.cluster, matching)
    outcome = Outcome(truth, predicted, detection.cluster, detection.novelty, n_known)
    scores = window_scores(outcome)
    return scores, {cluster: classes[position] for cluster, position in matching.items()}


def _as_fields(scores: Mapping[str, float]) -> dict[str, Any]:
    """Scores as fields of a record; those without a field of their own are ``extra``."""
    own = {field.name for field in dataclasses.fields(WindowRecord)}
    extra = {name: value for name, value in scores.items() if name not in own}
    return {name: value for name, value in scores.items() if name in own} | {"extra": extra}


def shown_stream(stream: Stream, asking: Asking) -> Stream:
    """The stream, with labels that names of the learner's own can stand beside if need be."""
    return stream.with_text_labels() if asking.asks_nobody else stream
