from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cilf.core import Detection, rows
from cilf.errors import BadConfig, BadInput, CilfError, NotFitted
from cilf.learners import LEARNERS, Learner, load, make
from cilf.learners.cilf import CILF
from cilf.learners.iforest import IForest
from cilf.query import name_clusters

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
Y = ["ant", "bee", "cat"] * 10


@pytest.fixture
def learner() -> Learner:
    return IForest(n_estimators=5, seed=3)


def test_get_params_are_the_constructors(learner: Learner) -> None:
    assert learner.get_params() == IForest().get_params() | {"n_estimators": 5, "seed": 3}
    assert list(learner.get_params(deep=False)) == IForest.parameter_names()


def test_set_params_changes_and_returns_the_learner(learner: Learner) -> None:
    assert learner.set_params(seed=9) is learner
    assert learner.get_params()["seed"] == 9


def test_unknown_parameter_is_answered_with_the_nearest(learner: Learner) -> None:
    with pytest.raises(BadConfig, match=r"'iforest' 'n_estimator': did you mean 'n_estimators'"):
        learner.set_params(n_estimator=4)


def test_repr_shows_what_was_changed(learner: Learner) -> None:
    assert repr(IForest()) == "IForest()"
    assert repr(learner) == "IForest(seed=3, n_estimators=5)"
    assert repr(clone(learner)) == repr(learner)


def test_make_by_name() -> None:
    assert make("cilf", seed=4).get_params()["seed"] == 4
    assert type(make("cilf")) is LEARNERS["cilf"]
    with pytest.raises(BadConfig, match="did you mean 'cilf'"):
        make("clif")


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, None])
def test_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(BadConfig, match="seed is"):
        IForest().set_params(seed=seed).fit(X, Y)


def test_classes_are_in_order_of_first_appearance(learner: Learner) -> None:
    learner.fit(X[:6], [5, 1, 5, 3, 1, 3])
    assert learner.classes_.tolist() == [5, 1, 3]
    learner.update(X[:3], [9, 1, 0])
    assert learner.classes_.tolist() == [5, 1, 3, 9, 0]


def test_changing_classes_outside_changes_nothing_inside(learner: Learner) -> None:
    learner.fit(X, Y).classes_[0] = "dog"
    assert learner.classes_.tolist() == ["ant", "bee", "cat"]


def test_labels_grow_with_the_longest_name(learner: Learner) -> None:
    learner.fit(X, Y).update(X[:1] + 50, ["rhinoceros beetle"])
    assert learner.predict(X[:1] + 50).tolist() == ["rhinoceros beetle"]


def test_lists_are_taken(learner: Learner) -> None:
    learner.fit([[0, 0], [9, 9], [0, 1], [9, 8]], ["low", "high", "low", "high"])
    assert learner.predict([[1, 0], [8, 9]]).tolist() == ["low", "high"]


def test_not_fitted_is_caught_as_what_it_resembles(learner: Learner) -> None:
    for caught in (NotFitted, CilfError, ValueError, AttributeError):
        with pytest.raises(caught, match=r"this IForest is not fitted yet: call fit"):
            learner.predict(X)
    assert not hasattr(learner, "classes_")


def test_history_says_what_happened(learner: Learner) -> None:
    learner.fit(X, Y).update(X[:2], ["dog", "ant"])
    assert learner._describe()["history"] == [
        {"event": "fit", "n_instances": 30, "new_classes": ["ant", "bee", "cat"]},
        {"event": "update", "n_instances": 2, "new_classes": ["dog"]},
    ]


def test_a_failed_update_learns_no_name(learner: Learner) -> None:
    learner.fit(X, Y)
    with pytest.raises(BadInput, match="y has 2 labels for 3 instances"):
        learner.update(X[:3], ["dog", "dog"])
    assert learner.classes_.tolist() == ["ant", "bee", "cat"]
    assert learner._n_updates == 0


def test_n_novel_is_checked(learner: Learner) -> None:
    learner.fit(X, Y)
    with pytest.raises(BadInput, match="n_novel is 31, but the window holds 30"):
        learner.detect(X, n_novel=31)
    with pytest.raises(CilfError, match="n_novel is -1"):
        learner.detect(X, n_novel=-1)


# ----------------------------------------------------------------- other names


def test_renaming_keeps_order_and_predictions(learner: Learner) -> None:
    before = learner.fit(X, Y).predict(X).tolist()
    assert learner.rename({"bee": "novel beetle"}) is learner
    assert learner.classes_.tolist() == ["ant", "novel beetle", "cat"]
    assert learner.predict(X).tolist() == [
        "novel beetle" if label == "bee" else label for label in before
    ]
    learner.update(X[:2], ["novel beetle", "dog"])
    assert learner.classes_.tolist() == ["ant", "novel beetle", "cat", "dog"]


def test_names_may_be_swapped_and_replaced_at_once(learner: Learner) -> None:
    learner.fit(X, Y).rename({"ant": "bee", "bee": "ant", "cat": "cat"})
    assert learner.classes_.tolist() == ["bee", "ant", "cat"]
    learner.rename({"ant": 1, "bee": 2, "cat": 3})
    assert learner.classes_.tolist() == [2, 1, 3]
    learner.rename({np.int64(1): np.str_("x"), 2: "y", 3: "z"})
    assert learner.classes_.tolist() == ["y", "x", "z"]


def test_other_names_are_saved(learner: Learner, tmp_path: Path) -> None:
    learner.fit(X, Y).rename({"bee": "wasp"}).save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.classes_.tolist() == ["ant", "wasp", "cat"]
    assert loaded.former_names == ["bee"]
    assert loaded.predict(X).tolist() == learner.predict(X).tolist()


def test_a_renaming_is_history_and_no_update(learner: Learner) -> None:
    learner.fit(X, Y).rename({"bee": "wasp"})
    assert learner._n_updates == 0
    assert learner._describe()["history"][-1] == {
        "event": "rename", "n_instances": 0, "new_classes": ["wasp"], "old_classes": ["bee"]
    }  # fmt: skip


def test_former_names_are_those_no_class_has_now(learner: Learner) -> None:
    assert learner.fit(X, Y).former_names == []
    learner.rename({"ant": "bee", "bee": "ant"}).rename({"cat": "dog"}).rename({"dog": "fox"})
    assert learner.former_names == ["cat", "dog"]
    _, labels = self_taught_names(learner.rename({"fox": "novel-4"}).rename({"novel-4": "fox"}))
    assert labels == ["novel-5"]


def self_taught_names(learner: Learner) -> tuple[list[int], list[str]]:
    zeros = np.zeros(1, np.float32)
    found = Detection(zeros, np.array(["ant"]), np.array([0]), 1, {}, zeros[:, None])
    rows, labels = name_clusters(found, [*learner.classes_, *learner.former_names])
    return rows.tolist(), labels.tolist()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"dog": "fox"}, "names renames 'dog', which is no class of this learner"),
        ({"ant": "bee"}, "two classes the name 'bee'"),
        ({"ant": "x", "bee": "x"}, "two classes the name 'x'"),
        ({"ant": 1}, r"names has new names of another kind \(1\)"),
        ({"ant": 1, "bee": "x"}, r"names.values\(\) mixes ints and strings"),
        ({"ant": None}, r"names.values\(\)\[0\] is missing"),
        ({"ant": ""}, r"names.values\(\)\[0\] is missing"),
        ({"ant": 1.5}, "labels are ints or strings"),
        ({"ant": ["x"]}, "labels are ints or strings"),
        ({True: "x"}, "labels are ints or strings"),
        ({1: "x"}, "names renames 1, which is no class"),
        ({}, "names is {}: give"),
        ([("ant", "x")], "give {old name: new name}"),
        ("ant", "give {old name: new name}"),
        (None, "give {old name: new name}"),
    ],
)
def test_a_renaming_that_cannot_be_is_refused_and_changes_nothing(
    learner: Learner, names: Any, said: str
) -> None:
    learner.fit(X, Y)
    with pytest.raises(BadInput, match=said) as caught:
        learner.rename(names)
    assert "\n" not in str(caught.value)
    assert learner.classes_.tolist() == ["ant", "bee", "cat"]
    assert len(learner._describe()["history"]) == 1


def test_an_int_for_true_is_no_class() -> None:
    learner = IForest(n_estimators=5).fit(X, [0, 1, 2] * 10)
    with pytest.raises(BadInput, match="labels are ints or strings"):
        learner.rename({True: 5})


@pytest.mark.parametrize("name", ["cilf", "dnn-base"])
def test_probabilities_are_as_often_right_as_they_say(name: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = rng.normal(y[:, None] * np.array([1.0, 0.0, 0.5, 0.0]), 0.9).astype(np.float32)
    learner = make(name, epochs=5, backbone="mlp").fit(X[:300], y[:300])
    probabilities = learner.class_probabilities(X[300:])
    assert probabilities is not None
    right = learner.predict(X[300:]) == y[300:]
    assert 0.5 < right.mean() < 0.9
    assert probabilities.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.06)


def test_a_learner_without_scores_or_held_out_instances_gives_no_probabilities() -> None:
    X, y = np.arange(20.0)[:, None], ["ant", "bee"] * 10
    assert make("iforest").fit(X, y).class_probabilities(X) is None
    certain = make("cilf", epochs=0, calibration_size=0).fit(X, y)
    assert certain.class_probabilities(X) is None


def test_many_instances_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) + np.repeat([[0.0], [6.0]], 25, axis=0)
    learner = CILF(epochs=2).fit(X, ["ant"] * 25 + ["bee"] * 25)
    labels, probabilities = learner.predict(X), learner.class_probabilities(X)
    sizes, predict = [], CILF._predict
    monkeypatch.setattr(rows, "BLOCK", 16)
    monkeypatch.setattr(CILF, "_predict", lambda self, X: sizes.append(len(X)) or predict(self, X))
    assert np.array_equal(learner.predict(X), labels)
    assert np.allclose(learner.class_probabilities(X), probabilities, atol=1e-5)
    assert sizes == [16, 16, 16, 2]
