from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import workflow
from cilf.data import load_instances
from cilf.errors import BadConfig, BadInput
from cilf.learners import Learner
from cilf.learners.iforest import IForest


def test_findings_of_another_model_are_refused(named_points: Path) -> None:
    workflow.fit("known.csv", "other", learner="iforest")
    with pytest.raises(BadInput, match="found were made with another model than other"):
        workflow.update("other", *workflow.read_labels("found"))


def test_what_was_learned_is_not_learned_twice(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    with pytest.raises(BadInput, match="has learned all 60 labels already"):
        workflow.update("model", *workflow.read_labels("found"))
    (named_points / "found/more.csv").write_text("identity,label\nup-0,up\nleft-0,odd\n")
    more = workflow.update("model", *workflow.read_labels("found/more.csv"))
    assert (more.n_labels, more.new_classes) == (1, ["odd"])


def test_a_name_in_another_case_is_refused(named_points: Path) -> None:
    (named_points / "found/mine.csv").write_text("identity,label\nup-0,Left\n")
    with pytest.raises(BadInput, match="'Left' and 'left' look alike"):
        workflow.update("model", *workflow.read_labels("found/mine.csv"))
    assert workflow.ModelFolder("model").current == 1


def test_a_class_may_have_the_name_that_leaves_out_in_files(points: Path) -> None:
    found = workflow.Findings.open("found")
    labels = {identity: "-" for identity in found.assignments.ids.tolist() if "up" in identity}
    updated = workflow.update("model", found, labels)
    assert (updated.n_labels, updated.new_classes) == (30, ["-"])


def test_a_model_is_updated_with_data_of_ones_own(points: Path) -> None:
    instances = load_instances("new.csv", columns=("x", "y"))
    labels = {identity: "high" for identity in instances.ids.tolist() if "up" in identity}
    updated = workflow.update("model", instances, labels, source="by hand")
    assert (updated.n_labels, updated.new_classes) == (30, ["high"])
    assert updated.event is not None
    assert updated.event.about["source"] == "by hand"
    assert workflow.predict("model", "new.csv").counts["high"] >= 25


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({}, "labels is empty"),
        ({"nobody": "up"}, "1 identities that the data do not hold .'nobody'."),
        ({"up-0": " "}, "is missing"),
    ],
)
def test_labels_that_cannot_be_learned(points: Path, labels: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        workflow.update("model", workflow.Findings.open("found"), labels)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its first update on, a learner takes everything for its newest class."""

    def _predict(self: Learner, X: np.ndarray) -> np.ndarray:
        newest = len(self.classes_) - 1
        return np.full(len(X), newest) if self._n_updates else np.asarray(real(self, X))

    real = IForest._predict
    monkeypatch.setattr(IForest, "_predict", _predict)


@pytest.mark.usefixtures("forgetful")
def test_an_update_that_forgets_is_refused_unless_forced(named_points: Path) -> None:
    problem = r"stays as it is: .* lose 1\.000 .* measured on 96 .* more than 0\.05: look"
    with pytest.raises(workflow.WouldForget, match=problem) as told:
        workflow.update("model", *workflow.read_labels("found"))
    assert [c.label for c in told.value.result.changes] == ["left", "right", "up", "down"]
    assert told.value.result.loss == 1.0
    model = workflow.ModelFolder.open("model")
    assert (model.current, [p.name for p in Path("model/versions").iterdir()]) == (1, ["0001"])
    assert workflow.update("model", *workflow.read_labels("found"), tolerance=1.0).loss == 1.0
    model.rollback()
    forced = workflow.update("model", *workflow.read_labels("found"), force=True).event
    assert forced is not None
    assert (forced.version, forced.about["forced"]) == (3, True)


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, math.nan])
def test_a_tolerance_is_a_share(points: Path, tolerance: float) -> None:
    with pytest.raises(BadConfig, match="tolerance"):
        workflow.update("model", workflow.Findings("found"), {"up-0": "up"}, tolerance=tolerance)


def test_a_version_that_calls_a_class_otherwise(named_points: Path, edit: Any) -> None:
    event = workflow.update("model", *workflow.read_labels("found"), renames={"left": "west"}).event
    assert event is not None
    assert event.about["renamed"] == {"left": "west"}
    about = workflow.describe("model")
    assert [(c.label, c.since, c.n_labels) for c in about.classes[:2]] == [
        ("west", 1, 48), ("right", 1, 48),
    ]  # fmt: skip

    def name_lefts(row: dict[str, str]) -> None:
        row["name"] = "left" if row["identity"].startswith("left") else ""

    edit(named_points / "found" / "findings.csv", name_lefts)
    again = workflow.update("model", *workflow.read_labels("found/findings.csv"))
    assert again.new_classes == []
    assert again.event is not None
    assert again.event.about["labels"] == {"west": 20}
    with pytest.raises(BadInput, match="has learned all 20 labels"):
        workflow.update("model", *workflow.read_labels("found/findings.csv"))
    with pytest.raises(BadInput, match="'Right' and 'right' look alike"):
        workflow.update("model", *workflow.read_labels("found"), renames={"west": "Right"})
    with pytest.raises(BadInput, match="two classes the name 'right'"):
        workflow.update("model", *workflow.read_labels("found"), renames={"west": "right"})


@pytest.fixture
def mislabelled(points: Path) -> dict[str, str]:
    """Labels of which a third of one class is wrong."""
    ids = workflow.Findings.open(points / "found").assignments.ids.tolist()
    labels = {identity: identity.partition("-")[0] for identity in ids}
    labels = {identity: label for identity, label in labels.items() if label in ("up", "down")}
    return labels | {f"up-{number}": "down" for number in range(10)}


def test_wrong_labels_are_named_and_refused(mislabelled: dict[str, str]) -> None:
    found = workflow.Findings.open("found")
    with pytest.raises(
        workflow.WouldForget, match=r"7 of 40 new labels of class 'down'.*'up'"
    ) as told:
        workflow.update("model", found, mislabelled)
    (doubts,) = told.value.result.doubts
    assert doubts.refuses
    assert set(doubts.suspects) < {f"up-{number}" for number in range(10)}
    assert "up-0, up-2, " in str(told.value)
    assert "and 2 more" in str(told.value)
    assert workflow.ModelFolder("model").current == 1
    forced = workflow.update("model", found, mislabelled, force=True)
    assert forced.event is not None
    assert forced.event.about["doubts"] == [doubts.to_json()]


def test_right_labels_are_not_in_doubt(named_points: Path) -> None:
    assert workflow.update("model", *workflow.read_labels("found")).doubts == []
