from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow import ModelFolder


def test_names_of_classes_are_texts(points: Path) -> None:
    lines = (points / "known.csv").read_text().replace(",left", ",7").replace(",right", ",12")
    (points / "numbers.csv").write_text(lines)
    fitted = workflow.fit("numbers.csv", "numbers", learner="iforest")
    assert fitted.accuracy.keys() == {"7", "12"}
    assert workflow.ModelFolder("numbers").learner().classes_.tolist() == ["7", "12"]
    predicted = workflow.predict("numbers", "new.csv")
    assert set(predicted.counts) <= {"7", "12"}
    assert predicted.to_csv().splitlines()[0] == b"identity,label,novelty_p,source"


def test_fit_replaces_nothing_unless_told_to(points: Path) -> None:
    with pytest.raises(BadInput, match=r"model already \(version 1\).*--again"):
        workflow.fit("known.csv", "model", learner="iforest")
    with pytest.raises(BadInput, match="holds other things"):
        workflow.fit("known.csv", "found", learner="iforest")
    with pytest.raises(BadInput, match="is a file"):
        workflow.fit("known.csv", "known.csv", learner="iforest")
    again = workflow.fit("known.csv", "model", learner="iforest", again=True)
    model = ModelFolder.open("model")
    assert (again.event.version, again.event.before) == (2, 1)
    assert [event.version for event in model.lineage()] == [2]
    assert model.rollback().version == 1


def test_the_test_split_is_scored_by_class(points: Path) -> None:
    fitted = workflow.fit("known.csv", "other", learner="iforest")
    assert fitted.n_labels == 96
    assert {label: score.n for label, score in fitted.accuracy.items()} == {"left": 12, "right": 12}
    assert {label: score.n for label, score in fitted.held_out.items()} == {"left": 0, "right": 0}
    assert fitted.mean_accuracy > 0.9


def test_a_fit_says_what_the_next_update_starts_from(points: Path) -> None:
    few = {"epochs": 1, "update_epochs": 1, "embedding_size": 4, "calibration_size": 9}
    fitted = workflow.fit("known.csv", "other", parameters=few)
    workflow.detect("other", "new.csv", "seen", n_novel=0, page=False)
    named = {"up-0": "up", "up-1": "up", "up-2": "up"}
    updated = workflow.update("other", workflow.Findings("seen"), named, force=True)
    own = {c.label: (c.held_out.n, c.held_out.before) for c in updated.changes}
    for label, score in fitted.held_out.items():
        assert score.n == 9
        assert own[label] == (score.n, score.after)
        assert fitted.event.about["held_out"][label]["after"] == score.after
