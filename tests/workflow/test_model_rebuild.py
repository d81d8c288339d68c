from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.checks.compare import state_of
from cilf.errors import BadInput
from cilf.learners import Learner
from cilf.workflow.versions import ModelFolder

from .conftest import class_of
from .earlier import remove_digests


def arrays_of(learner: Learner) -> object:
    return state_of(learner)["arrays"]


def test_a_rebuilt_version_equals_the_one_that_was_made(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    model = ModelFolder.open("model")
    rebuilt = workflow.rebuild("model", note="check")
    assert (rebuilt.event.event, rebuilt.event.version, rebuilt.n_labels) == ("rebuild", 3, 156)
    assert rebuilt.classes == ["left", "right", "up", "down"]
    assert arrays_of(model.learner(3)) == arrays_of(model.learner(2))
    assert model.ledger().counts == model.ledger(2).counts
    assert workflow.rebuild("model").event.version == 4  # a rebuilt version is like any other
    model.rollback(2)


@pytest.mark.usefixtures("named_points")
def test_a_network_is_rebuilt_bit_by_bit() -> None:
    tiny = {"epochs": 2, "update_epochs": 2, "backbone": "mlp", "calibration_size": 5}
    workflow.fit("known.csv", "net", learner="cilf", parameters=tiny)
    workflow.detect("net", "new.csv", "seen", n_novel=2)
    seen = workflow.Findings.open("seen")
    names = {i: class_of(i) for i in seen.assignments.ids.tolist() if class_of(i) in ("up", "down")}
    workflow.update("net", seen, names, force=True)
    workflow.rebuild("net")
    model = ModelFolder.open("net")
    assert arrays_of(model.learner(3)) == arrays_of(model.learner(2))


def test_what_was_corrected_or_forgotten_is_not_learned(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    found = workflow.Findings.open("found")
    ups = [i for i in found.assignments.ids.tolist() if class_of(i) == "up"]
    workflow.update("model", found, dict.fromkeys(ups[:5], "above"), force=True)
    workflow.merge("model", "left", "right")
    workflow.forget("model", "down")
    model = ModelFolder.open("model")
    rebuilt = workflow.rebuild("model")
    assert rebuilt.classes == ["left", "up", "above"]
    learner = model.learner()
    assert [event["event"] for event in learner._history] == ["fit", "update"]
    kept = learner.remembered()  # the fit took the first update too: it had one class left
    assert kept is not None
    counts = {label: kept.y.tolist().count(label) for label in rebuilt.classes}
    assert counts == model.ledger().counts == {"left": 96, "up": 25, "above": 5}


def test_data_that_moved_or_changed(points: Path) -> None:
    workflow.fit("known.csv", "here", learner="iforest", parameters={"n_estimators": 5})
    (points / "known.csv").rename(points / "moved.csv")
    with pytest.raises(BadInput, match=r"known\.csv"):
        workflow.rebuild("here")
    assert workflow.rebuild("here", data="moved.csv").n_labels == 96
    lines = (points / "moved.csv").read_text().splitlines()
    (points / "moved.csv").write_text("\n".join([*lines[:20], *lines[60:]]) + "\n")
    with pytest.raises(BadInput, match=r"moved.csv lacks \d+ of 96 instances .* \(--data\)"):
        workflow.rebuild("here", data="moved.csv")
    assert ModelFolder.open("here").current == 2


def test_versions_of_an_earlier_cilf_cannot_be_rebuilt(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    remove_digests(named_points / "model")
    (named_points / "model/versions/0002/instances.npz").unlink()
    with pytest.raises(BadInput, match="kept no instances: update again"):
        workflow.rebuild("model")
    table = named_points / "model/versions/0001/labels.csv"
    lines = [line.rpartition(",")[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadInput, match="kept no hashes of instances: fit again"):
        workflow.rebuild("model")
