from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cilf.errors import BadConfig, BadInput, NotFitted
from cilf.learners.iforest import IForest
from cilf.learners.mini_batches import MiniBatchLearner

pd = pytest.importorskip("pandas")


def batches(n: int, *classes: int) -> tuple[Any, Any]:
    """Rows of some classes in turn, at places that are far from each other."""
    of = np.resize(classes, n)
    x = np.random.default_rng(n).normal(of[:, None] * [8.0, -8.0], 1.0)
    return pd.DataFrame(x, columns=["a", "b"]), pd.Series([f"class {i}" for i in of])


def fitted(n: int = 60) -> MiniBatchLearner:
    return MiniBatchLearner(IForest(n_estimators=20), at_least=40).learn_many(*batches(n, 0, 1))


def test_mini_batches_wait_until_there_are_enough_of_two_classes() -> None:
    stream = MiniBatchLearner(IForest(n_estimators=20), at_least=40)
    stream.learn_many(*batches(50, 0))
    assert stream.n_waiting == 50
    assert stream.predict_many(batches(2, 0)[0]).tolist() == [None, None]
    stream.learn_many(*batches(10, 1))
    assert stream.n_waiting == 0
    X, y = batches(20, 0, 1)
    X.index = range(100, 120)
    said = stream.predict_many(X)
    assert said.index.tolist() == X.index.tolist()
    assert (said.to_numpy() == y.to_numpy()).mean() > 0.9


def test_new_classes_are_learned_by_an_update() -> None:
    stream = fitted()
    stream.learn_many(*batches(30, 2))
    assert stream.n_waiting == 30
    stream.learn_waiting()
    stream.learn_waiting()
    assert stream.learner.classes_.tolist() == ["class 0", "class 1", "class 2"]
    X, y = batches(12, 0, 1, 2)
    assert (stream.predict_many(X).to_numpy() == y.to_numpy()).mean() > 0.8


def test_single_instances_may_name_features_in_any_order() -> None:
    stream = fitted()
    assert stream.predict_one({"b": -8.0, "a": 8.0}) == "class 1"
    stream.learn_one({"b": 0.0, "a": 0.0}, "class 0")
    assert stream.n_waiting == 1
    assert stream.predict_one({"a": 0.0, "b": 0.0}) == "class 0"


def test_probabilities() -> None:
    from cilf import CILF

    X, y = batches(60, 0, 1)
    stream = MiniBatchLearner(CILF(epochs=2, width=8), at_least=60)
    assert stream.predict_proba_one({"a": 0.0, "b": 0.0}) == {}
    assert stream.predict_proba_many(X).shape == (60, 0)
    table = stream.learn_many(X, y).predict_proba_many(X)
    assert table.columns.tolist() == ["class 0", "class 1"]
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-5)
    assert stream.predict_proba_one(dict(X.iloc[0])) == pytest.approx(dict(table.iloc[0]), abs=1e-5)


def test_a_fitted_learner_is_updated() -> None:
    X, y = batches(40, 0, 1)
    learner = IForest(n_estimators=20).fit(X.to_numpy(), y.tolist())
    stream = MiniBatchLearner(learner, at_least=10)
    stream.learn_many(*batches(20, 2))
    assert len(learner.classes_) == 3


def test_refusals() -> None:
    stream = fitted()
    with pytest.raises(BadInput, match="differ from the first ones in c: give a, b"):
        stream.predict_one({"a": 1.0, "b": 2.0, "c": 3.0})
    with pytest.raises(BadInput, match="X is a list: give a table of pandas"):
        stream.predict_many([[1.0, 2.0]])
    with pytest.raises(BadInput, match="x is a list: give a dictionary"):
        stream.predict_one([1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(NotFitted, match="nothing was learned yet, and 0 instances wait"):
        MiniBatchLearner(IForest()).detect_many(batches(2, 0)[0])
    with pytest.raises(BadConfig, match="at_least is 0"):
        MiniBatchLearner(IForest(), at_least=0)


def test_river_evaluates_it() -> None:
    """River learns and predicts one by one, and scales the features in a pipeline."""
    base = pytest.importorskip("river.base")
    from river import evaluate, metrics, preprocessing

    base.MiniBatchClassifier.register(MiniBatchLearner)
    X, y = batches(160, 0, 1)
    model = preprocessing.StandardScaler() | MiniBatchLearner(IForest(n_estimators=20), at_least=80)
    rows = zip(X.tail(80).to_dict("records"), y.tail(80), strict=True)
    model.learn_many(X.head(80), y.head(80))
    accuracy = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
    assert accuracy.get() > 0.9
    assert (model.predict_many(X).to_numpy() == y.to_numpy()).mean() > 0.9
