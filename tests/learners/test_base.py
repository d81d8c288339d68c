from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from cilf.errors import BadConfig, BadInput, CilfError, NotFitted
from cilf.learners import LEARNERS, Learner, make
from cilf.learners.iforest import IForest

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
Y = ["ant", "bee", "cat"] * 10


@pytest.fixture
def learner() -> Learner:
    return IForest(n_estimators=5, seed=3)


def test_get_params_are_the_constructors(learner: Learner) -> None:
    assert learner.get_params() == IForest().get_params() | {"n_estimators": 5, "seed": 3}
    assert list(learner.get_params()) == IForest.parameter_names()


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
