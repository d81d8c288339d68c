from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from cilf.core import Detection, Label, WindowRecord
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.evaluate import run_stream, steps
from cilf.evaluate.run import prepare_stream
from cilf.learners import Joint
from cilf.learners.iforest import IForest
from cilf.query import QueryPolicy, choose_queries, name_clusters
from cilf.query.budget import Query
from cilf.stream import Stream


class Spy(IForest):
    """Notes everything it is handed."""

    def fit(self, X: Any, y: Any) -> Spy:
        self.calls: list[tuple[Any, ...]] = [("fit", X, y)]
        return super().fit(X, y)

    def detect(self, X: Any, n_novel: int | None = None) -> Detection:
        self.calls.append(("detect", X, n_novel))
        return super().detect(X, n_novel)

    def update(self, X: Any, y: Any) -> Spy:
        self.calls.append(("update", X, y))
        return super().update(X, y)

    def predict(self, X: Any) -> Array:
        self.calls.append(("predict", X))
        return super().predict(X)


class Scripted:
    """A stand-in whose detections are made from the truth by a rule: scores are known then."""

    former_names: ClassVar[list[Label]] = []
    takes_all_labels: ClassVar[bool] = False

    def __init__(self, stream: Stream, rule: str) -> None:
        self._truth = {window.X.tobytes(): window.y for window in stream}
        self._truth[stream.holdout.X.tobytes()] = stream.holdout.y
        self._rule = rule

    def fit(self, X: Array, y: Array) -> Scripted:
        self._classes: list[Label] = list(dict.fromkeys(y.tolist()))
        return self

    @property
    def classes_(self) -> Array:
        return np.array(self._classes)

    def detect(self, X: Array, n_novel: int | None = None) -> Detection:
        y = self._truth[X.tobytes()]
        novel = [label for label in np.unique(y).tolist() if label not in self._classes]
        is_novel = np.isin(y, novel)
        cluster = np.full(len(y), -1)
        if self._rule == "perfect":
            cluster[is_novel] = np.searchsorted(novel, y[is_novel])
        label = np.where(is_novel, self._classes[0], y)
        n_found = int(cluster.max()) + 1
        novelty = is_novel.astype(np.float32)
        return Detection(novelty, label, cluster, n_found, {}, np.zeros((len(y), 1), np.float32))

    def update(self, X: Array, y: Array) -> Scripted:
        self._classes += [label for label in np.unique(y).tolist() if label not in self._classes]
        return self

    def predict(self, X: Array) -> Array:
        y = self._truth[X.tobytes()]
        return np.where(np.isin(y, self._classes), y, self._classes[0])


def detections(learner: IForest, stream: Stream, query: Query) -> list[list[int]]:
    learner.fit(*prepare_stream(stream, QueryPolicy(query)).initial)
    return [step.detection.cluster.tolist() for step in steps(learner, stream, QueryPolicy(query))]


def list_names(calls: Sequence[tuple[Any, ...]]) -> list[str]:
    return [call[0] for call in calls]


def test_it_is_the_loop_its_docstring_shows(stream: Stream) -> None:
    learner = IForest(n_estimators=20).fit(*stream.initial)
    expected = []
    for window in stream:
        found = learner.detect(window.X)
        rows = choose_queries(found, 0.5, seed=stream.seed, window=window.index)
        if len(rows):
            learner.update(window.X[rows], window.y[rows])
        first = np.isin(stream.holdout.y, stream.plan.initial)
        right = learner.predict(stream.holdout.X)[first] == stream.holdout.y[first]
        expected.append((window.index, found.n_novel, len(rows), right.mean()))
    records = list(run_stream(IForest(n_estimators=20), stream, query=0.5))
    assert [
        (r.window, r.n_novel_found, r.n_queried, r.holdout_accuracy[0]) for r in records
    ] == expected


def test_the_learner_gets_instances_and_the_labels_that_were_queried(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    spy.fit(*stream.initial)
    taken = list(steps(spy, stream, QueryPolicy(query=0.5)))
    assert list_names(spy.calls) == ["fit"] + 4 * ["detect", "update", "predict"]
    assert spy.calls[0][2] is stream.initial.y
    for step, first in zip(taken, range(1, 13, 3), strict=True):
        detect, update, predict = spy.calls[first : first + 3]
        assert np.array_equal(detect[1], step.window.X)
        assert detect[2] is None
        believed = np.flatnonzero(step.detection.is_novel)
        assert set(step.queried) < set(believed)
        assert len(step.queried) == math.ceil(0.5 * len(believed))
        assert np.array_equal(update[1], step.window.X[step.queried])
        assert np.array_equal(update[2], step.window.y[step.queried])
        assert predict[1] is stream.holdout.X


@pytest.mark.parametrize("query", [0.0, 0, "self"])
def test_truth_that_is_never_queried_changes_nothing(stream: Stream, query: Query) -> None:
    rows = np.concatenate(stream._rows)
    dataset = stream._dataset
    y = dataset.train.y.copy()
    y[rows] = y[np.random.default_rng(0).permutation(rows)]
    shuffled = replace(stream, _dataset=replace(dataset, train=replace(dataset.train, y=y)))
    assert not np.array_equal(shuffled.window(1).y, stream.window(1).y)
    assert detections(IForest(n_estimators=20), shuffled, query) == detections(
        IForest(n_estimators=20), stream, query
    )


def test_a_perfect_learner_gets_perfect_scores(stream: Stream) -> None:
    records = list(run_stream(Scripted(stream, "perfect"), stream))
    assert [r.n_novel_true for r in records] == [len(w.novel) for w in stream.plan.windows]
    assert [r.n_novel_found for r in records] == [r.n_novel_true for r in records]
    assert [r.n_known for r in records] == [3, 5, 7, 7]
    for r in records:
        quiet = r.n_novel_true == 0
        for score in (r.na, r.h, r.aus, r.auroc, r.known_auroc, r.extra["plan_h"]):
            assert math.isnan(score) if quiet else score == 1.0
        for score in (r.macro_f, r.micro_f, r.known_na, r.known_macro_f, r.open_macro_f):
            assert score == 1.0
        assert math.isnan(r.m_new) if quiet else r.m_new == 0
        assert r.f_new == 0
        assert set(r.holdout_accuracy.values()) == {1.0}
    assert sorted(records[-1].holdout_accuracy) == [0, 1, 2, 4]  # nothing arrived in window 3


def test_what_is_missed_stays_novel(stream: Stream) -> None:
    records = list(run_stream(Scripted(stream, "blind"), stream))
    there = [
        len(set(window.y.tolist()) - set(stream.plan.initial)) for window in stream
    ]  # one class vanishes at some point
    assert [r.n_novel_true for r in records] == there
    assert there[-1] > len(stream.plan.windows[-1].novel)
    for r in records:
        assert (r.n_known, r.n_novel_found, r.n_queried, r.m_new) == (3, 0, 0, 1.0)
        assert (r.na, r.known_na, r.auroc, r.known_micro_f) == (0.5, 1.0, 1.0, 1.0)
        assert (r.h, r.aus) == (0.0, 0.0)  # silence earns nothing
        assert r.open_micro_f < 1  # novel instances are given to the first class
    assert records[-1].holdout_accuracy[1] == 0


def test_by_the_plan_what_is_missed_is_known_from_the_next_window_on(stream: Stream) -> None:
    records = list(run_stream(Scripted(stream, "blind"), stream))
    assert [r.n_novel_planned for r in records] == [len(w.novel) for w in stream.plan.windows]
    for r, window in zip(records, stream, strict=True):
        seen = [label in stream.plan.initial for label in window.y if label not in window.novel]
        assert r.extra["plan_aks"] == pytest.approx(sum(seen) / len(seen))
        assert r.aks == 1.0
    assert records[-1].extra["plan_aks"] < 1
    assert records[0].extra["plan_na"] == records[0].na  # so far nobody has missed anything


def test_given_hands_every_learner_the_same_labels_and_detects_nothing(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    records = list(run_stream(spy, stream, protocol="given"))
    assert "detect" not in list_names(spy.calls)
    updates = [call for call in spy.calls if call[0] == "update"]
    windows = [window for window in stream if window.novel]
    for (_, X, y), window in zip(updates, windows, strict=True):
        novel = np.isin(window.y, window.novel)
        assert np.array_equal(X, window.X[novel])
        assert np.array_equal(y, window.y[novel])
    for r, window in zip(records, stream, strict=True):
        assert r.n_novel_found is None
        assert r.seconds_detect == 0.0
        assert all(math.isnan(r.metric(name)) for name in ("na", "h", "plan_h", "auroc"))
        assert r.n_queried == np.isin(window.y, window.novel).sum()
        assert not math.isnan(r.holdout_accuracy[0])


@pytest.mark.parametrize("protocol", ["found", "given"])
def test_the_upper_bound_gets_the_labels_of_all_instances(stream: Stream, protocol: str) -> None:
    class All(Spy):
        takes_all_labels = True

    spy = All(n_estimators=20)
    records = list(run_stream(spy, stream, protocol=protocol))
    updates = [call for call in spy.calls if call[0] == "update"]
    for (_, X, y), window, r in zip(updates, stream, records, strict=True):
        assert np.array_equal(X, window.X)
        assert np.array_equal(y, window.y)
        assert r.n_queried == len(window.y)


def test_the_upper_bound_names_no_clusters(stream: Stream) -> None:
    with pytest.raises(BadConfig, match="query is 'self' and the learner is 'joint'"):
        next(run_stream(Joint(), stream, query="self"))


def test_the_number_of_novel_classes_can_be_given(stream: Stream) -> None:
    for given, handed in (("true", [2, 2, 0, 3]), (1, [1, 1, 1, 1])):
        spy = Spy(n_estimators=20)
        records = list(run_stream(spy, stream, n_novel=given))
        assert [call[2] for call in spy.calls if call[0] == "detect"] == handed
        assert [r.n_novel_found for r in records] == handed


def test_without_queries_there_is_no_update(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    records = list(run_stream(spy, stream, query=0))
    assert "update" not in list_names(spy.calls)
    assert all(r.n_queried == 0 for r in records)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("query", 1.5), ("query", -0.1), ("query", "all"), ("query", True), ("query", -1),
        ("query", None), ("query", math.nan), ("n_novel", -1), ("n_novel", "True"),
        ("propagate", 1.1), ("propagate", 0), ("propagate", True), ("propagate", "0.8"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_at_once(stream: Stream, argument: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=f"{argument} is {value!r}"):
        run_stream(IForest(n_estimators=20), stream, **{argument: value})


def test_an_unknown_strategy_is_answered_with_the_nearest(stream: Stream) -> None:
    with pytest.raises(BadConfig, match="unknown strategy 'mix': did you mean 'mixed'"):
        run_stream(IForest(), stream, strategy="mix")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "self", "propagate": 0.8}, "no answers to propagate"),
        ({"query": "self", "strategy": "mixed"}, "nobody is queried then"),
        ({"query": 2, "propagate": 0.8}, "a cluster needs 3 answers"),
        ({"query": np.int64(2), "propagate": 0.8}, "a cluster needs 3 answers"),
        ({"protocol": "given", "query": 0.5}, "query is 0.5: every novel instance is handed over"),
        ({"protocol": "given", "query": 1}, "query is 1: every novel instance"),
        ({"protocol": "given", "n_novel": "true"}, "leave n_novel out"),
        ({"protocol": "gven"}, "unknown protocol 'gven': did you mean 'given'"),
    ],
)
def test_what_could_never_happen_is_refused(
    stream: Stream, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadConfig, match=said):
        run_stream(IForest(), stream, **arguments)


def test_the_strategy_chooses_the_queries(stream: Stream) -> None:
    learner = IForest(n_estimators=20).fit(*stream.initial)
    for step in steps(learner, stream, QueryPolicy(query=2, strategy="representative")):
        expected = choose_queries(
            step.detection, 2, strategy="representative", seed=0, window=step.window.index
        )
        assert step.queried.tolist() == expected.tolist()
        assert step.record.n_queried == len(expected)


def test_clusters_whose_answers_agree_are_labelled_whole(stream: Stream) -> None:
    queried = list(run_stream(Scripted(stream, "perfect"), stream, query=3))
    propagated = list(run_stream(Scripted(stream, "perfect"), stream, query=3, propagate=0.8))
    for few, many, window in zip(queried, propagated, stream, strict=True):
        novel = int(np.isin(window.y, window.novel).sum())
        assert (few.n_queried, few.n_propagated) == (many.n_queried, 0)
        assert math.isnan(few.propagated_right)
        assert many.n_propagated == novel - many.n_queried
        if novel:
            assert many.propagated_right == 1.0
        assert few.named == many.named == {}


def test_labels_that_were_propagated_are_held_against_the_truth(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    spy.fit(*stream.initial)
    seen = 0
    for step in steps(spy, stream, QueryPolicy(query=0.5, propagate=0.4)):
        X, y = next(call[1:] for call in reversed(spy.calls) if call[0] == "update")
        truth = {image.tobytes(): label for image, label in zip(*_pair(step), strict=True)}
        queried = {image.tobytes() for image in step.window.X[step.queried]}
        right = [truth[x.tobytes()] == label for x, label in zip(X, y, strict=True)]
        own = np.array([x.tobytes() not in queried for x in X])
        assert all(np.array(right)[~own])  # queried instances keep their true label
        assert step.record.n_propagated == own.sum()
        if own.any():
            assert step.record.propagated_right == pytest.approx(np.array(right)[own].mean())
            seen += 1
    assert seen


def _pair(step: Any) -> tuple[Array, Array]:
    return step.window.X, step.window.y


# ----------------------------------------------------------------- nobody is queried


def test_a_perfect_learner_that_names_classes_itself_gets_perfect_scores(stream: Stream) -> None:
    text = stream.with_text_labels()
    records = list(run_stream(SelfNamed(text), text, query="self"))
    assert [r.n_queried for r in records] == [0, 0, 0, 0]
    assert [sorted(r.named) for r in records] == [
        ["novel-1", "novel-2"], ["novel-3", "novel-4"], [], ["novel-5", "novel-6", "novel-7"]
    ]  # fmt: skip
    for r, window in zip(records, text.plan.windows, strict=True):
        assert sorted(map(str, r.named.values())) == sorted(map(str, window.novel))
        assert r.n_novel_true == len(window.novel)
        assert set(r.holdout_accuracy.values()) == {1.0}
        assert r.known_na == 1.0
        if window.novel:
            assert (r.na, r.propagated_right) == (1.0, 1.0)


class SelfNamed(Scripted):
    """Recognises the classes that it has learned, under any name."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream, "perfect")
        self._called: dict[Label, Label] = {}  # true class -> name it was learned under
        self._windows = {
            image.tobytes(): y for w in stream for image, y in zip(w.X, w.y.tolist(), strict=True)
        }

    def fit(self, X: Array, y: Array) -> SelfNamed:
        super().fit(X, y)
        self._called = {label: label for label in self._classes}
        return self

    @property
    def classes_(self) -> Array:
        return np.array(list(self._called.values()))

    def detect(self, X: Array, n_novel: int | None = None) -> Detection:
        self._classes = list(self._called)
        found = super().detect(X, n_novel)
        return replace(found, label=np.array([self._called[label] for label in found.label]))

    def update(self, X: Array, y: Array) -> SelfNamed:
        for image, name in zip(X, y.tolist(), strict=True):
            self._called[self._windows[image.tobytes()]] = name
        return self

    def predict(self, X: Array) -> Array:
        truth = self._truth[X.tobytes()].tolist()
        return np.array([self._called.get(label, "nothing") for label in truth])


def test_names_of_its_own_are_learned_from_the_clusters(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    spy.fit(*stream.with_text_labels().initial)
    known = spy.classes_.tolist()
    assert all(isinstance(label, str) for label in known)
    for step in steps(spy, stream, QueryPolicy("self")):
        rows, labels = name_clusters(step.detection, known)
        updates = [call for call in spy.calls if call[0] == "update"]
        if len(rows):
            assert np.array_equal(updates[-1][1], step.window.X[rows])
            assert updates[-1][2].tolist() == labels.tolist()
        for name, label in step.record.named.items():
            members, counts = np.unique(step.window.y[rows[labels == name]], return_counts=True)
            assert counts[members == label] == counts.max()
        assert set(step.label.tolist()) <= set(map(str, range(10)))
        known = spy.classes_.tolist()
    assert len(known) == len(set(known))


def test_records_come_one_by_one(stream: Stream) -> None:
    spy = Spy(n_estimators=20)
    records = run_stream(spy, stream)
    assert isinstance(next(records), WindowRecord)
    assert list_names(spy.calls) == ["fit", "detect", "update", "predict"]


def test_matching_names_the_class_of_each_cluster(stream: Stream) -> None:
    learner = Scripted(stream, "perfect").fit(*stream.initial)
    for step in steps(learner, stream):
        assert sorted(step.novel) == sorted(step.window.novel)
        assert step.matching == dict(enumerate(sorted(step.novel)))
