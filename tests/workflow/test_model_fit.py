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


def test_held_out_instances_are_scored_by_class(points: Path) -> None:
    fitted = workflow.fit("known.csv", "other", learner="iforest")
    assert fitted.n_labels == 96
    assert {label: score.n for label, score in fitted.accuracy.items()} == {"left": 12, "right": 12}
    assert fitted.mean_accuracy > 0.9
