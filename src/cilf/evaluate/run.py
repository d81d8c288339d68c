"""The loop over a stream: detect, score, query, update, measure; one step for each window."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cilf.core import Detection, Label, Window, WindowRecord, parameters, validation
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.evaluate import metrics
from cilf.evaluate.checkpoint import Checkpoint, require_same
from cilf.evaluate.made_up_names import collect_names, match_names, use_true_names
from cilf.evaluate.metric_table import window_scores
from cilf.evaluate.metrics import mean
from cilf.evaluate.reading import Reading, read_twice, undefined_scores
from cilf.evaluate.records import RunFolder
from cilf.learners import Learner
from cilf.query.budget import Query
from cilf.query.query_policy import FOUND, LabelledRows, QueryPolicy, label_rows
from cilf.query.strategies import RANDOM
from cilf.stream import Stream

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """One window, its detection, and the scores of the detection."""

    window: Window
    detection: Detection
    label: Array  # (n,) the detection's, with true classes for made-up names
    novel: tuple[Label, ...]  # classes in the window that the learner did not know
    matching: Mapping[int, Label]  # found cluster -> the novel class it is matched to
    queried: Ints  # rows of the window whose labels were queried
    record: WindowRecord


def run_stream(
    learner: Learner,
    stream: Stream,
    query: Query = 1.0,
    n_novel: int | str | None = None,
    resume: str | Path | None = None,
    strategy: str = RANDOM,
    propagate: float | None = None,
    protocol: str = FOUND,
) -> Iterator[WindowRecord]:
    """Fit a learner on the start of a stream, then yield one record for each window.

    Parameters
    ----------
    learner : Learner
        Learner. It is fitted afresh on ``stream.initial``.
    stream : Stream
        Stream. The learner sees neither its hold-out set nor labels that were not queried.
    query : float, int or "self", default=1.0
        Number of labels to query. A float is a share of the instances believed novel. An int is a
        budget for each novel cluster: 1.0 queries all, 1 queries one of each cluster. "self"
        queries none: every cluster becomes a class ``novel-1``, ``novel-2``, ..., and labels that
        are whole numbers reach the learner as text.
    n_novel : int, "true" or None, default=None
        Number of novel classes. None lets the learner find it. An int is handed to the learner in
        every window. "true" hands it the true number: that of the classes in the window that it
        does not know, those that it missed before included.
    resume : path or None, default=None
        Run folder that keeps the records and the learner after each window. If it holds finished
        windows, their records come first and a *copy* of the learner read from there goes on;
        ``learner`` itself then stays as it is.
    strategy : str, default="random"
        Name of the strategy that chooses the instances to query, one of
        :data:`cilf.query.STRATEGIES`.
    propagate : float or None, default=None
        Share of a cluster's answers that have to agree before the rest of the cluster gets the same
        label, see :func:`cilf.query.propagate_answers`. None propagates no answers.
    protocol : {"found", "given"}, default="found"
        Labels that the learner learns from. "found" is the whole loop: it gets labels of instances
        that it found novel. "given" isolates the update: nothing is detected, and every learner is
        handed the same instances, all of the classes that start in the window, with their labels.
        A learner with ``takes_all_labels``, the upper bound ``joint``, gets the labels of all
        instances of the window in both.

    Yields
    ------
    WindowRecord
        Scores of one window.

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
    # Made now: a mistake is refused before the first record is asked for.
    policy = QueryPolicy(query, n_novel, strategy, propagate, protocol)
    if resume is None:
        return run_policy(learner, stream, policy)
    folder, about = RunFolder(Path(resume)), _describe(learner, stream, policy)
    with ExitStack() as lock:
        lock.enter_context(folder.lock())
        if folder.exists():
            require_same(folder, about)
        else:
            folder.write_run(about)
        return _run_locked(run_policy(learner, stream, policy, folder), lock.pop_all())


def _run_locked(records: Iterator[WindowRecord], lock: ExitStack) -> Iterator[WindowRecord]:
    with lock:
        yield from records


def run_policy(
    learner: Learner,
    stream: Stream,
    policy: QueryPolicy,
    folder: RunFolder | None = None,
    keep: Callable[[Step], None] | None = None,
    fitted: Path | None = None,
) -> Iterator[WindowRecord]:
    """The loop of :func:`run_stream`, which resumes the run in ``folder`` if one is given.

    ``keep`` is called with each step before its window counts as finished. ``fitted`` is a place
    for the fitted learner that runs share, see :meth:`Checkpoint.open`.
    """
    _require_queries(learner, policy)
    prepared, checkpoint = prepare_stream(stream, policy), None
    if folder is None:
        learner.fit(*prepared.initial)
    else:
        checkpoint = Checkpoint.open(folder, learner, prepared, fitted)
        learner = checkpoint.learner
    finished = checkpoint.finished if checkpoint else []
    yield from finished
    for step in steps(learner, stream, policy, finished=finished):
        if keep is not None:
            keep(step)
        if checkpoint is not None:
            checkpoint.save(step.record)
        yield step.record


def _require_queries(learner: Learner, policy: QueryPolicy) -> None:
    """Refuse to name the clusters of a learner that is given all labels anyway."""
    if learner.takes_all_labels and policy.is_self:
        raise BadConfig(
            f"query is {policy.query!r} and the learner is {learner.name!r}, which gets the true "
            "labels of all instances: leave query out."
        )


def steps(
    learner: Learner,
    stream: Stream,
    policy: QueryPolicy | None = None,
    *,
    finished: Sequence[WindowRecord] = (),
) -> Iterator[Step]:
    """The steps of a *fitted* learner, after the windows of the ``finished`` records."""
    policy = policy or QueryPolicy()
    prepared, named = prepare_stream(stream, policy), collect_names(finished)
    for index in range(len(finished) + 1, len(prepared) + 1):
        step = _step(learner, prepared, prepared.window(index), policy, named)
        named |= step.record.named
        yield step


def prepare_stream(stream: Stream, policy: QueryPolicy) -> Stream:
    """The stream, with labels as text if made-up names have to stand beside them."""
    return stream.with_text_labels() if policy.is_self else stream


def _describe(learner: Learner, stream: Stream, policy: QueryPolicy) -> dict[str, Any]:
    """Everything that the records depend on, as JSON holds it; a function goes by its name."""
    about: dict[str, Any] = {"learner": learner.name, "parameters": parameters.to_json(learner)}
    about |= {"seed": stream.seed, **dataclasses.asdict(policy), "plan": stream.describe()}
    return dict(json.loads(json.dumps(about, default=lambda value: value.__qualname__)))


def _step(
    learner: Learner, stream: Stream, window: Window, policy: QueryPolicy, named: dict[str, Label]
) -> Step:
    known: list[Label] = list(dict.fromkeys(use_true_names(learner.classes_, named).tolist()))
    novel = validation.in_order_of_appearance(window.y, known)
    detection, seconds_detect = _measure_seconds(lambda: _detect(learner, window, policy, novel))
    label = use_true_names(detection.label, named)
    reading = Reading(window, detection, label, known, novel)
    scores = undefined_scores() if policy.is_given else window_scores(*read_twice(reading))

    labelled = _label_window(learner, window, detection, policy, stream.seed)
    _, seconds_update = _measure_seconds(lambda: _update(learner, window, labelled))

    made_up = match_names(labelled, window) if policy.is_self else {}
    record = WindowRecord(
        window=window.index,
        n_known=len(known),
        n_novel_true=len(novel),
        n_novel_planned=len(window.novel),
        n_novel_found=None if policy.is_given else detection.n_novel,
        **_as_fields(scores),
        holdout_accuracy=_holdout_accuracy(learner, stream, window.index, named | made_up),
        holdout_classes=metrics.group_sizes(stream.holdout.y, stream.plan.arrivals, window.index),
        n_queried=len(labelled.queried),
        seconds_detect=0.0 if policy.is_given else seconds_detect,
        seconds_update=seconds_update,
        n_propagated=int(labelled.propagated.sum()),
        propagated_right=_propagated_right(labelled, window, made_up),
        named=made_up,
    )
    return Step(window, detection, label, tuple(novel), reading.matched(), labelled.queried, record)


def _detect(
    learner: Learner, window: Window, policy: QueryPolicy, novel: Sequence[Label]
) -> Detection:
    if policy.is_given:
        return _take_truth(learner, window)
    n_novel = len(novel) if isinstance(policy.n_novel, str) else policy.n_novel
    return learner.detect(window.X, n_novel=n_novel)


def _take_truth(learner: Learner, window: Window) -> Detection:
    """The true clusters of a window, for its snapshot; a learner's own are not asked for."""
    cluster = np.full(len(window.y), -1, dtype=np.int64)
    for position, label in enumerate(window.novel):
        cluster[window.y == label] = position
    return Detection(
        novelty=(cluster >= 0).astype(np.float32),
        label=learner.predict(window.X),
        cluster=cluster,
        n_novel=len(window.novel),
        curve={},
        embedding=learner.embed(window.X),
    )


def _label_window(
    learner: Learner, window: Window, detection: Detection, policy: QueryPolicy, seed: int
) -> LabelledRows:
    if learner.takes_all_labels:
        return label_rows(window, np.arange(len(window.y)))
    taken = [*learner.classes_.tolist(), *learner.former_names]
    return policy.label_window(window, detection, taken, seed)


def _update(learner: Learner, window: Window, labelled: LabelledRows) -> None:
    if len(labelled.rows):
        learner.update(window.X[labelled.rows], labelled.labels)


def _holdout_accuracy(
    learner: Learner, stream: Stream, window: int, named: Mapping[str, Label]
) -> dict[int, float]:
    predicted = use_true_names(learner.predict(stream.holdout.X), named)
    return metrics.group_accuracy(stream.holdout.y, predicted, stream.plan.arrivals, window)


def _propagated_right(
    labelled: LabelledRows, window: Window, made_up: Mapping[str, Label]
) -> float:
    right = use_true_names(labelled.labels, made_up) == window.y[labelled.rows]
    return mean(right[labelled.propagated].tolist())


def _measure_seconds(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _as_fields(scores: Mapping[str, float]) -> dict[str, Any]:
    """Scores as fields of a record; those without a field of their own are ``extra``."""
    own = {field.name for field in dataclasses.fields(WindowRecord)}
    extra = {name: value for name, value in scores.items() if name not in own}
    return {name: value for name, value in scores.items() if name in own} | {"extra": extra}
