from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cilf
from cilf.errors import BadInput, NotFitted
from cilf.learners.editable import require_editable
from cilf.learners.iforest import IForest
from cilf.learners.never import Never

X = np.array([[0.0], [1.0], [2.0], [9.0], [9.5]])
Y = ["ant", "ant", "emmet", "bee", "bee"]


@pytest.fixture
def learner() -> IForest:
    return IForest(n_estimators=5).fit(X, Y)


def test_a_forgotten_class_leaves_what_the_learner_keeps(learner: IForest) -> None:
    learner.forget("bee")
    assert learner.classes_.tolist() == ["ant", "emmet"]
    kept = learner.remembered()
    assert kept is not None
    assert kept.y.tolist() == ["ant", "ant", "emmet"]
    assert learner._get_state()[0]["sample"].tolist() == [[0.0], [1.0], [2.0]]
    assert learner.predict([[9.0]]).tolist() == ["emmet"]
    assert learner.update([[9.0]], ["bee"]).predict([[9.5]]).tolist() == ["bee"]


def test_labels_are_taken_back_one_by_one(learner: IForest) -> None:
    learner.update([[1.0]], ["ant"])  # told twice
    learner.retract([[1.0]], ["ant"])
    assert learner._memory.y.tolist() == [0, 1, 2, 2, 0]
    learner.retract([[1.0], [7.0]], ["ant", "ant"])  # nobody told it the second one
    assert learner._memory.X.ravel().tolist() == [0.0, 2.0, 9.0, 9.5]


def test_an_edit_is_in_the_history_and_no_update(learner: IForest) -> None:
    learner.merge("ant", "emmet").retract([[0.0]], ["ant"])
    assert [event["event"] for event in learner._history] == ["fit", "merge", "retract"]
    assert (learner._n_updates, learner.former_names) == (0, ["emmet"])


def test_a_forest_of_an_earlier_cilf_guesses_the_classes_of_its_sample(
    learner: IForest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = IForest._get_state

    def without_labels(self: IForest):  # type: ignore[no-untyped-def]
        arrays, plain = state(self)
        return {name: array for name, array in arrays.items() if name != "sample.y"}, plain

    monkeypatch.setattr(IForest, "_get_state", without_labels)
    learner.save(tmp_path)
    monkeypatch.undo()
    loaded = cilf.load(tmp_path)
    assert isinstance(loaded, IForest)
    assert loaded.forget("bee")._get_state()[0]["sample"].tolist() == [[0.0], [1.0], [2.0]]


@pytest.mark.parametrize(
    ("method", "arguments", "problem"),
    [
        ("forget", ["wasp"], "'wasp' is no class of this learner: its classes are 'ant'"),
        ("forget", ["ant", "bee"], "leaves 1 of 3 classes"),
        ("forget", [], "name one or more"),
        ("merge", ["ant", "bee", "emmet"], "leaves 1 of 3 classes: leave at least 2"),
        ("merge", ["ant"], "give one or more classes beside 'ant'"),
        ("merge", ["ant", "ant"], "give one or more classes beside 'ant'"),
        ("merge", ["ant", "wasp"], "'wasp' is no class"),
        ("retract", [[[0.0]], ["wasp"]], "'wasp' is no class"),
        ("retract", [X, Y], "would keep no instance that it was fitted on"),
    ],
)
def test_edits_that_are_refused_change_nothing(
    learner: IForest, method: str, arguments: list, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        getattr(learner, method)(*arguments)
    assert learner.classes_.tolist() == ["ant", "emmet", "bee"]
    assert len(learner._memory) == 5


def test_an_edit_needs_a_fitted_learner_that_can_do_it() -> None:
    with pytest.raises(NotFitted, match="not fitted yet"):
        IForest().forget("ant")
    with pytest.raises(BadInput, match="'never' cannot forget a class: fit another one"):
        require_editable(Never(), "forget a class")
