"""Answers that replace earlier ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow.versions import ModelFolder

from .conftest import class_of
from .earlier import remove_digests

Names = dict[str, str]


@pytest.fixture
def ups(points: Path) -> list[str]:
    """The identities of the upper points."""
    ids = workflow.Findings.open("found").assignments.ids.tolist()
    return [identity for identity in ids if class_of(identity) == "up"]


def tell(names: Names, **options: bool) -> workflow.UpdateResult:
    return workflow.update("model", workflow.Findings.open("found"), names, **options)


def classes() -> list[str]:
    return ModelFolder.open("model").learner().classes_.tolist()


def counts() -> dict[str, int]:
    return {known.label: known.n_labels for known in workflow.describe("model").classes}


def n_kept() -> dict[str, int]:
    return {known.label: known.n_kept for known in workflow.describe("model").classes}


def test_a_corrected_typo_makes_no_second_class(ups: list[str]) -> None:
    tell(dict.fromkeys(ups, "upp"))
    corrected = tell(dict.fromkeys(ups, "up"))
    assert (corrected.n_corrected, corrected.n_labels, corrected.new_classes) == (30, 0, [])
    assert classes() == ["left", "right", "up"]
    assert counts() == n_kept() == {"left": 48, "right": 48, "up": 30}
    assert workflow.describe("model").classes[2].since == 2
    with pytest.raises(BadInput, match="has learned all 30 labels already"):
        tell(dict.fromkeys(ups, "up"))


def test_a_correction_can_be_corrected_back(ups: list[str]) -> None:
    for name in ("up", "above", "up"):
        tell(dict.fromkeys(ups, name))
        assert classes() == ["left", "right", name]


def test_labels_that_are_replaced_leave_the_learner(ups: list[str]) -> None:
    tell(dict.fromkeys(ups, "up"))
    corrected = tell(dict.fromkeys(ups[:5], "higher"), force=True)
    assert (corrected.n_corrected, corrected.new_classes) == (5, ["higher"])
    assert counts() == n_kept() == {"left": 48, "right": 48, "up": 25, "higher": 5}
    predicted = workflow.predict("model", "new.csv")
    labels = dict(zip(predicted.ids.tolist(), predicted.labels.tolist(), strict=True))
    assert [labels[identity] for identity in (ups[0], ups[5])] == ["higher", "up"]


def test_a_class_that_loses_its_last_label_is_forgotten(ups: list[str]) -> None:
    tell(dict.fromkeys(ups[:10], "up"))
    both = dict.fromkeys(ups[:5], "higher") | dict.fromkeys(ups[5:], "lower")
    corrected = tell(both, force=True)
    assert classes() == ["left", "right", "higher", "lower"]
    assert corrected.event is not None
    assert corrected.event.about["forgotten"] == ["up"]
    assert counts() == {"left": 48, "right": 48, "higher": 5, "lower": 25}


def test_classes_that_are_corrected_to_one_name_are_one(ups: list[str]) -> None:
    tell(dict.fromkeys(ups[:10], "up") | dict.fromkeys(ups[10:], "upp"), force=True)
    tell(dict.fromkeys(ups, "up"))
    assert classes() == ["left", "right", "up"]
    assert counts() == n_kept() == {"left": 48, "right": 48, "up": 30}


def test_classes_change_places(ups: list[str]) -> None:
    ids = workflow.Findings.open("found").assignments.ids.tolist()
    downs = [identity for identity in ids if class_of(identity) == "down"]
    tell(dict.fromkeys(ups, "down") | dict.fromkeys(downs, "up"))
    tell(dict.fromkeys(ups, "up") | dict.fromkeys(downs, "down"), force=True)
    assert counts() == n_kept() == {"left": 48, "right": 48, "down": 30, "up": 30}
    predicted = workflow.predict("model", "new.csv")
    wrong = [
        identity
        for identity, label in zip(predicted.ids.tolist(), predicted.labels.tolist(), strict=True)
        if label != class_of(identity)
    ]
    assert not wrong


def test_training_labels_are_corrected_too(points: Path) -> None:
    workflow.detect("model", "known.csv", "trained")
    trained = workflow.Findings.open("trained")
    rights = [i for i in trained.assignments.ids.tolist() if class_of(i) == "right"][:40]
    workflow.update("model", trained, dict.fromkeys(rights, "east"), force=True)
    told = counts()
    assert told["right"] + told["east"] + told["left"] >= 96
    assert told["east"] == 40


def test_labels_of_an_earlier_cilf_are_found_by_identity(ups: list[str]) -> None:
    tell(dict.fromkeys(ups, "upp"))
    remove_digests(Path("model"))
    table = Path("model/versions/0002/labels.csv")
    lines = [line.rpartition(",")[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadInput, match="has learned all 30 labels already"):
        tell(dict.fromkeys(ups, "upp"))
    assert tell(dict.fromkeys(ups, "up")).n_labels == 0
    assert classes() == ["left", "right", "up"]


@pytest.mark.usefixtures("stiff")
def test_a_learner_that_takes_nothing_back_says_so(
    ups: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    tell(dict.fromkeys(ups, "up"))
    tell(dict.fromkeys(ups[:5], "higher"))
    assert "cannot take labels back: 5 corrected labels" in caplog.text
    assert counts()["up"] == 25
    tell(dict.fromkeys(ups[5:], "above"))  # a rename is no edit of what was learned
    assert "above" in classes()
    assert "up" not in classes()


@pytest.fixture
def stiff(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner of the model is one that cannot edit its classes."""

    class Stiff:
        pass

    monkeypatch.setattr("cilf.learners.EditableLearner", Stiff)
