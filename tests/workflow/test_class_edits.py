from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow.versions import ModelFolder

from .conftest import class_of


@pytest.fixture
def four(named_points: Path) -> ModelFolder:
    """A model of four classes, in version 2."""
    workflow.update("model", *workflow.read_labels("found"))
    return ModelFolder.open("model")


def n_labels() -> dict[str, int]:
    return {known.label: known.n_labels for known in workflow.describe("model").classes}


def test_a_class_gets_another_name_in_a_version(four: ModelFolder) -> None:
    event = workflow.rename("model", "up", " above ", note="clearer")
    assert (event.event, event.version, event.about["note"]) == ("rename", 3, "clearer")
    assert n_labels() == {"left": 48, "right": 48, "above": 30, "down": 30}
    predicted = workflow.predict("model", "new.csv")
    assert predicted.counts["above"] == 30
    with pytest.raises(BadInput, match="has learned all 60 labels"):
        workflow.update("model", *workflow.read_labels("found"))  # its tables say "up"
    four.rollback()
    assert n_labels()["up"] == 30


def test_merged_classes_count_as_one(four: ModelFolder) -> None:
    workflow.merge("model", "down", "up")
    assert n_labels() == {"left": 48, "right": 48, "down": 60}
    assert workflow.describe("model").classes[2].since == 2
    predicted = workflow.predict("model", "new.csv")
    assert predicted.counts == {"down": 60, "left": 20, "right": 20}
    with pytest.raises(BadInput, match="has learned all 60 labels"):
        workflow.update("model", *workflow.read_labels("found"))
    four.rollback()
    assert n_labels() == {"left": 48, "right": 48, "up": 30, "down": 30}


def test_a_forgotten_class_is_novel_again(four: ModelFolder) -> None:
    workflow.rename("model", "up", "above")
    assert workflow.forget("model", "above").version == 4
    assert n_labels() == {"left": 48, "right": 48, "down": 30}
    about = workflow.describe("model")
    assert [(f.label, f.version, f.held_by) for f in about.forgotten] == [("above", 4, [2, 3])]
    found = workflow.detect("model", "new.csv", "again").assignments
    ups = [row for row, i in enumerate(found.ids.tolist()) if class_of(i) == "up"]
    assert (found.cluster[ups] >= 0).all()
    assert set(found.source[ups].tolist()) == {"model"}
    workflow.update("model", *workflow.read_labels("found"))  # its name is free again
    assert n_labels()["up"] == 30
    four.rollback(3)
    assert workflow.describe("model").forgotten == []


def test_the_first_version_holds_what_it_was_fitted_on(four: ModelFolder) -> None:
    workflow.merge("model", "up", "left")
    workflow.forget("model", "up")
    (forgotten,) = workflow.describe("model").forgotten
    assert forgotten.held_by == [1, 2, 3]


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("edit", "names", "problem"),
    [
        (workflow.rename, ["wasp", "bee"], "'wasp' is no class of model: its classes are 'left'"),
        (workflow.rename, ["up", "up"], "is called 'up' already"),
        (workflow.rename, ["up", "down"], "'down' is another class.*cilf merge model down up"),
        (workflow.rename, ["up", "Down"], "'Down' and 'down' look alike"),
        (workflow.rename, ["up", " "], "cannot be used"),
        (workflow.merge, ["up", "wasp"], "'wasp' is no class"),
        (workflow.merge, ["up"], "give one or more classes beside 'up'"),
        (workflow.forget, ["left", "right", "up"], "leaves 1 of 4 classes"),
    ],
)
def test_edits_that_are_refused(edit, names: list[str], problem: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=problem):
        edit("model", *names)
    assert ModelFolder.open("model").current == 2


def test_a_former_name_is_hinted_at(four: ModelFolder) -> None:
    workflow.rename("model", "up", "above")
    with pytest.raises(BadInput, match="'up' is called 'above' now"):
        workflow.forget("model", "up")


def test_a_learner_that_cannot_says_so(points: Path) -> None:
    parameters = {"epochs": 0, "backbone": "mlp"}
    workflow.fit("known.csv", "other", learner="odin-cnn", parameters=parameters)
    with pytest.raises(BadInput, match="'odin-cnn' cannot forget a class: fit another one"):
        workflow.forget("other", "left")
    with pytest.raises(BadInput, match="'odin-cnn' cannot merge classes"):
        workflow.merge("other", "left", "right")
    assert workflow.rename("other", "left", "west").about["renamed"] == {"left": "west"}


def test_a_killed_edit_never_was(four: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ModelFolder, "_point_at", stop)
        with pytest.raises(KeyboardInterrupt):
            workflow.forget("model", "up")
    assert n_labels()["up"] == 30
    assert workflow.forget("model", "up").version == 3
    assert four.current == 3
