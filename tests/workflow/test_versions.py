from __future__ import annotations

import json
import os
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
from cilf.workflow.model_log import Log

from .earlier import remove_digests


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
    before = (named_points / "model/current").read_bytes()
    model.rollback()
    (named_points / "model/current").write_bytes(before)
    assert [event.event for event in model.events()] == ["fit", "update"]
    assert model.rollback().before == 2
    assert [event.event for event in model.events()] == ["fit", "update", "rollback"]
    assert len((named_points / "model/log.jsonl").read_text().splitlines()) == 3


def test_looking_while_another_command_sets_the_pointer(
    named_points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, logged = ModelFolder.open("model"), ModelFolder._read_log

    def read(folder: ModelFolder) -> Log:
        log = logged(folder)
        monkeypatch.setattr(ModelFolder, "_read_log", logged)
        # Log and pointer change after the log was read.
        workflow.update("model", *workflow.read_labels("found"))
        return log

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
        (lambda model: (model / "log.jsonl").write_text("{\n"), "log.jsonl, line 1, is no JSON"),
        (lambda model: (model / "log.jsonl").write_text(""), "does not end with a whole line"),
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
    assert names(Path("model")) == ["README.md", "current", "lock", "log.jsonl", "versions"]


def test_a_fit_that_was_killed_leaves_room_for_the_next(points: Path) -> None:
    (points / "other").mkdir()
    shutil.copytree("model/versions", "other/versions")
    shutil.copy("model/log.jsonl", "other/log.jsonl")
    fitted = workflow.fit("known.csv", "other", learner="iforest")
    assert (fitted.event.version, names(Path("other/versions"))) == (1, ["0001"])
    assert ModelFolder.open("other").id != ModelFolder.open("model").id


def test_a_model_of_another_format_is_refused(points: Path) -> None:
    log = (points / "model/log.jsonl").read_text()
    (points / "model/log.jsonl").write_text(log.replace('"format": 3', '"format": 1'))
    with pytest.raises(BadInput, match="format 1, this cilf reads formats 2 and 3: fit one"):
        workflow.predict("model", "new.csv")
    with pytest.raises(BadInput, match="format 1, this cilf reads formats 2 and 3: fit one"):
        workflow.fit("known.csv", "model", learner="iforest", again=True)


def test_add_takes_any_learner(tmp_path: Path) -> None:
    learner = IForest(n_estimators=5).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    model = ModelFolder(tmp_path / "model")
    with model.lock():
        model.add(learner, "fit", {"data": "by hand"})
    assert ModelFolder.open(tmp_path / "model").learner().classes_.tolist() == ["a", "b"]
    assert len(model.id) == 32


# ----------------------------------------------------------------- every file has a digest


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def use_everything() -> list[object]:
    ModelFolder.open("model").verify()
    predicted = workflow.predict("model", "new.csv")
    return [predicted.labels.tolist(), workflow.describe("model").to_json()]


@pytest.fixture
def updated(named_points: Path) -> Path:
    """A model with two versions."""
    workflow.update("model", *workflow.read_labels("found"))
    return named_points / "model"


@pytest.mark.parametrize(
    "name",
    [
        "current", "log.jsonl", "versions/0001/labels.csv", "versions/0001/model.json",
        "versions/0002/labels.csv", "versions/0002/instances.npz", "versions/0002/model.json",
    ],
)  # fmt: skip
def test_no_byte_of_a_model_changes_unnoticed(updated: Path, name: str) -> None:
    file = updated / name
    whole = file.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 7)):
        flip(file, place)
        with pytest.raises(BadInput, match=r"^the model in model.* is damaged .*from a copy\.$"):
            ModelFolder.open("model").verify()
        file.write_bytes(whole)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"is damaged .*: restore it from a copy\.$"):
        ModelFolder.open("model").verify()
    file.write_bytes(whole)
    assert ModelFolder.open("model").verify().unsealed == []


def test_a_changed_digit_of_the_pointer_uses_no_other_version(updated: Path) -> None:
    text = (updated / "current").read_text()
    (updated / "current").write_text(text.replace("0002", "0001", 1))
    for use in (lambda: cilf.load("model"), lambda: workflow.predict("model", "new.csv")):
        with pytest.raises(BadInput, match="is damaged"):
            use()
    with pytest.raises(BadInput, match="does not lead to version 1"):
        workflow.rename("model", "left", "west")
    assert names(updated / "versions") == ["0001", "0002"]


def test_a_version_in_the_place_of_another_is_found(updated: Path) -> None:
    shutil.rmtree(updated / "versions/0002")
    shutil.copytree(updated / "versions/0001", updated / "versions/0002")
    for use in (lambda: cilf.load("model"), lambda: workflow.predict("model", "new.csv")):
        with pytest.raises(BadInput, match=r"0002/model.json is not what was written"):
            use()


def test_opening_a_model_reads_no_instances(updated: Path) -> None:
    (updated / "versions/0002/instances.npz").write_bytes(b"damaged")
    workflow.predict("model", "new.csv")
    with pytest.raises(BadInput, match=r"0002/instances.npz is not what was written"):
        workflow.rebuild("model")
    with pytest.raises(BadInput, match=r"0002/instances.npz is not what was written"):
        ModelFolder.open("model").verify()


def test_a_missing_version_is_damage(updated: Path) -> None:
    shutil.rmtree(updated / "versions/0001")
    with pytest.raises(BadInput, match="the model in model is damaged"):
        workflow.describe("model")


def test_a_pipe_in_the_place_of_a_file_blocks_nothing(updated: Path) -> None:
    for name in ("current", "log.jsonl", "versions/0002/labels.csv", "versions/0002/model.json"):
        whole = (updated / name).read_bytes()
        (updated / name).unlink()
        os.mkfifo(updated / name)
        with pytest.raises(BadInput, match=r"cannot be read: not a regular file"):
            workflow.predict("model", "new.csv")
        (updated / name).unlink()
        (updated / name).write_bytes(whole)


def test_a_model_of_an_earlier_cilf_is_read_and_sealed_by_its_first_change(updated: Path) -> None:
    expected = workflow.predict("model", "new.csv").labels.tolist()
    remove_digests(updated)
    assert workflow.predict("model", "new.csv").labels.tolist() == expected
    assert ModelFolder.open("model").verify().unsealed == [1, 2]
    workflow.rename("model", "left", "west")
    model = ModelFolder.open("model")
    assert model.verify().unsealed == []
    assert sorted(model.events()[-1].files) == ["0001", "0002", "0003"]
    assert workflow.rebuild("model").event.version == 4
    for name in ("log.jsonl", "versions/0001/labels.csv"):
        flip(updated / name, 30)
        with pytest.raises(BadInput, match="is damaged"):
            model.verify()
        flip(updated / name, 30)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("before", 2), ("before", None), ("version", 1), ("version", 10**30), ("event", "other"),
        ("renamed", {"left": 3}), ("forgotten", "left"), ("before", "1"), ("corrected", [["a"]]),
        ("event", "rename"), ("classes", ["\ud800"]), ("labels", {"left": -1}),
        ("new_classes", None),
    ],
)  # fmt: skip
def test_a_log_without_digests_is_checked_too(updated: Path, key: str, value: object) -> None:
    remove_digests(updated)
    first, second = (updated / "log.jsonl").read_text().splitlines()
    changed = json.dumps(json.loads(second) | {key: value})
    (updated / "log.jsonl").write_text(f"{first}\n{changed}\n")
    with pytest.raises(BadInput, match=r"damaged \(log.jsonl.*: restore it from a copy\.$"):
        workflow.predict("model", "new.csv")


@pytest.mark.parametrize("key", ["columns", "model_id", "event", "time", "version", "before"])
def test_a_log_without_a_key_is_damaged(updated: Path, key: str) -> None:
    remove_digests(updated)
    first, second = (updated / "log.jsonl").read_text().splitlines()
    kept = {name: value for name, value in json.loads(first).items() if name != key}
    (updated / "log.jsonl").write_text(f"{json.dumps(kept)}\n{second}\n")
    with pytest.raises(BadInput, match=f"log.jsonl, line 1, has no valid {key}"):
        workflow.predict("model", "new.csv")
