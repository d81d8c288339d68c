from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cilf
from cilf import workflow
from cilf.errors import BadInput
from cilf.learners.iforest import IForest
from cilf.workflow import ModelFolder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_model_folder_loads_at_its_current_version(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    assert cilf.load("model").classes_.tolist() == ["left", "right", "up", "down"]
    ModelFolder.open("model").rollback()
    assert cilf.load("model").classes_.tolist() == ["left", "right"]
    assert cilf.load("model/versions/0002").classes_.tolist() == ["left", "right", "up", "down"]


def test_history_says_where_labels_came_from(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"), source="found", note="first round")
    model = ModelFolder.open("model")
    fitted, updated = model.events()
    assert (fitted.event, fitted.version, fitted.before) == ("fit", 1, None)
    assert fitted.about["n_labels"] == 96
    assert fitted.about["labels"] == {"left": 48, "right": 48}
    assert fitted.about["columns"] == ["x", "y"]
    assert (updated.event, updated.version, updated.before) == ("update", 2, 1)
    assert updated.about["source"] == "found"
    assert updated.about["findings"] == workflow.Findings("found").id
    assert updated.about["labels"] == {"up": 30, "down": 30}
    assert (updated.about["note"], updated.about["forced"]) == ("first round", False)
    learned = model.labels(2)
    assert sorted(learned) == sorted(f"{name}-{i}" for name in ("up", "down") for i in range(30))
    assert all(identity.startswith(label) for identity, label in learned.items())


def test_rollback_goes_anywhere_and_removes_nothing(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    model = ModelFolder.open("model")
    before = {number: names(model.version_path(number)) for number in (1, 2)}
    assert model.rollback().version == 1
    with pytest.raises(BadInput, match="version 1, the first"):
        model.rollback()
    with pytest.raises(BadInput, match="at version 1 already"):
        model.rollback(1)
    with pytest.raises(BadInput, match="no version 7: its versions are 1, 2"):
        model.rollback(7)
    assert model.rollback(2, note="better").about["note"] == "better"
    assert [(e.event, e.version) for e in model.events()] == [
        ("fit", 1), ("update", 2), ("rollback", 1), ("rollback", 2),
    ]  # fmt: skip
    assert before == {number: names(model.version_path(number)) for number in (1, 2)}


def test_after_a_rollback_the_next_version_has_a_number_of_its_own(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    model = ModelFolder.open("model")
    model.rollback()
    again = workflow.update("model", *workflow.read_labels("found")).event
    assert again is not None
    assert (again.version, again.before) == (3, 1)
    assert [event.version for event in model.lineage()] == [1, 3]
    one, other = (cilf.load(f"model/versions/000{n}") for n in (2, 3))
    X = np.random.default_rng(0).normal(0, 5, size=(50, 2))
    assert one.predict(X).tolist() == other.predict(X).tolist()


def test_a_damaged_version_is_no_place_to_go_back_to(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    next((named_points / "model/versions/0001").glob("*.safetensors")).write_bytes(b"")
    with pytest.raises(BadInput, match="damaged"):
        ModelFolder.open("model").rollback()
    assert ModelFolder.open("model").current == 2


def test_a_rollback_that_was_killed_never_was(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    model = ModelFolder.open("model")
    model.rollback()
    (named_points / "model/current").write_text("0002\n")  # as it was before the last step
    assert [event.event for event in model.events()] == ["fit", "update"]
    assert model.rollback().before == 2
    assert [event.event for event in model.events()] == ["fit", "update", "rollback"]
    assert len((named_points / "model/log.jsonl").read_text().splitlines()) == 3


def test_looking_while_another_command_sets_the_pointer(
    named_points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, logged = ModelFolder.open("model"), ModelFolder._read_log

    def read(folder: ModelFolder) -> list[workflow.Event]:
        events = logged(folder)
        monkeypatch.setattr(ModelFolder, "_read_log", logged)
        # Log and pointer change after the log was read.
        workflow.update("model", *workflow.read_labels("found"))
        return events

    monkeypatch.setattr(ModelFolder, "_read_log", read)
    assert [event.version for event in model.events()] == [1]
    assert [event.version for event in model.events()] == [1, 2]


def test_only_one_command_changes_a_model_at_a_time(named_points: Path) -> None:
    model = ModelFolder.open("model")
    with model.lock(), pytest.raises(BadInput, match="another command is changing model"):
        workflow.update("model", *workflow.read_labels("found"))
    workflow.update("model", *workflow.read_labels("found"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda model: (model / "log.jsonl").unlink(), "log.jsonl cannot be read"),
        (lambda model: (model / "log.jsonl").write_text("{}\n"), "log.jsonl cannot be read"),
        (lambda model: (model / "log.jsonl").write_text(""), "does not lead to version 1"),
        (lambda model: shutil.rmtree(model / "versions"), "names the version '0001'"),
    ],
)
def test_a_damaged_model_is_refused_and_left_alone(
    named_points: Path, damage: Callable[[Path], object], problem: str
) -> None:
    damage(named_points / "model")
    left = sorted(str(path) for path in (named_points / "model").rglob("*"))
    with pytest.raises(BadInput, match=problem):
        workflow.update("model", *workflow.read_labels("found"))
    assert sorted(str(path) for path in (named_points / "model").rglob("*")) == left


def test_a_lost_pointer_costs_no_version(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    (named_points / "model/current").unlink()
    with pytest.raises(BadInput, match="current is missing"):
        workflow.fit("known.csv", "model", learner="iforest")
    assert (named_points / "model/versions/0002/model.json").is_file()


def test_a_model_without_versions_detects_and_predicts(points: Path) -> None:
    X = np.random.default_rng(0).normal([[0.0, 0.0], [9.0, 9.0]] * 20)
    IForest(n_estimators=5).fit(X, [3, 4] * 20).save("plain")
    (points / "plain.csv").write_text("a,b\n" + "1.5,2.5\n" * 100)
    assert set(workflow.predict("plain", "plain.csv").labels.tolist()) <= {"3", "4"}
    assert len(workflow.detect("plain", "plain.csv", "seen").assignments.ids) == 100
    with pytest.raises(BadInput, match="without versions"):
        workflow.update("plain", workflow.Findings("seen"), {"plain.csv:0": "3"})
    for path, problem in (("nowhere", "no folder nowhere"), ("found", "is no model")):
        with pytest.raises(BadInput, match=problem):
            workflow.predict(path, "new.csv")


KILLED = """
import json, os, signal, sys
from cilf import workflow

real = os.fsync


def update(step):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done = 0

    def fsync(descriptor):
        nonlocal done
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        real(descriptor)

    os.fsync = fsync
    workflow.update("model", *workflow.read_labels("found"))
    os._exit(0)


step, current = 0, 1
while current == 1:
    code = update(step)
    model = workflow.ModelFolder.open("model")
    current = model.current
    print(json.dumps([code, current, [e.version for e in model.events()],
                      model.learner().classes_.tolist()]))
    step += 1
"""


def test_killed_at_any_moment_the_model_is_the_old_or_the_new_one(named_points: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED)], capture_output=True, text=True, check=True
    )
    *before, after = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(before) > 8  # files, folders, log and pointer
    assert before == [[-9, 1, [1], ["left", "right"]]] * len(before)
    assert after[1:] == [2, [1, 2], ["left", "right", "up", "down"]]
    model = ModelFolder.open("model")
    model.rollback()
    assert names(Path("model/versions")) == ["0001", "0002"]
    assert names(Path("model")) == ["current", "lock", "log.jsonl", "versions"]


def test_a_fit_that_was_killed_leaves_room_for_the_next(points: Path) -> None:
    (points / "other").mkdir()
    shutil.copytree("model/versions", "other/versions")
    shutil.copy("model/log.jsonl", "other/log.jsonl")
    fitted = workflow.fit("known.csv", "other", learner="iforest")
    assert (fitted.event.version, names(Path("other/versions"))) == (1, ["0001"])
    assert ModelFolder.open("other").id != ModelFolder.open("model").id


def test_a_model_of_another_format_is_refused(points: Path) -> None:
    log = (points / "model/log.jsonl").read_text()
    (points / "model/log.jsonl").write_text(log.replace('"format": 2', '"format": 1'))
    with pytest.raises(BadInput, match="format 1, this cilf reads format 2: fit one"):
        workflow.predict("model", "new.csv")
    with pytest.raises(BadInput, match="format 1, this cilf reads format 2: fit one"):
        workflow.fit("known.csv", "model", learner="iforest", again=True)


def test_add_takes_any_learner(tmp_path: Path) -> None:
    learner = IForest(n_estimators=5).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    model = ModelFolder(tmp_path / "model")
    with model.lock():
        model.add(learner, "fit", {"data": "by hand"})
    assert ModelFolder.open(tmp_path / "model").learner().classes_.tolist() == ["a", "b"]
    assert len(model.id) == 32
