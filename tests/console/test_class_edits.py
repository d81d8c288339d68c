"""Merging and forgetting classes of the model, from the page to a version and back."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from fastapi.testclient import TestClient

from cilf.console import class_edits, overview, updates, window_view
from cilf.console.app import make_app
from cilf.console.classes import Classes
from cilf.console.guard import Access
from cilf.console.service import Conflict, Console
from cilf.console.store import Store
from cilf.errors import BadInput
from cilf.workflow.versions import ModelFolder

from ..points import write_points
from .conftest import URL
from .test_jobs import Desk, desk

__all__ = ["desk"]


@pytest.fixture
def learned(desk: Desk, tmp_path: Path) -> Desk:
    """Window 1 has taught the model "up" and "down", in version 2."""
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 30, "down": 30}, 1)
    desk.console.add_window(str(new))
    desk.work()
    desk.name_clusters(1)
    updates.start_update(desk.console, 1, force=True)
    assert desk.work().status == "done"
    return desk


def named(desk: Desk) -> set[str | None]:
    return {one["name"] for one in window_view.list_clusters(desk.console, 1)}


def test_a_class_is_forgotten_and_brought_back(learned: Desk) -> None:
    with TestClient(make_app(learned.console, Access()), base_url=URL) as client:
        body = {"name": "up", "model_version": 2, "person": "ann"}
        assert client.post("/api/classes/forget", json=body).status_code == 202
        assert learned.work().status == "done"
        assert client.get("/api/model").json()["classes"] == ["left", "right", "down"]
        page = client.get("/classes").text
        assert "Undo: up was forgotten" in page
        assert "Earlier versions still hold it: 2." in page
    assert named(learned) == {None, "down"}
    opened = learned.console.open(1)
    assert opened.events[-1].person == "ann"
    with pytest.raises(BadInput, match="has no class 'up'"):
        class_edits.start_forget(learned.console, "up")
    updates.start_rollback(learned.console, 2)
    learned.work()
    learned.console.undo(1)  # the window keeps its own history
    assert named(learned) == {"up", "down"}
    assert class_edits.find_last_edit(learned.console.model()) is None
    learned.store.close()


def test_merged_classes_are_one_on_every_page(learned: Desk) -> None:
    class_edits.start_merge(learned.console, "up", into="down", seen=2)
    done = learned.work()
    assert (done.status, done.result) == ("done", {"version": 3, "notices": []})
    assert named(learned) == {"down"}
    listed = {known["name"]: known for known in overview.list_classes(learned.console)}
    assert listed.keys() == {"left", "right", "down"}
    assert listed["down"]["n_labels"] == listed["down"]["counts"][0]["n"]
    with pytest.raises(BadInput, match="is a former name of 'down'"):
        learned.console.make_class("up")
    updates.start_update(learned.console, 1)
    assert "has learned all" in (learned.work().problem or "")  # nothing is new in this window
    learned.console.rename("down", "vertical")
    assert named(learned) == {"vertical"}
    updates.start_rollback(learned.console, 2)
    learned.work()
    assert named(learned) == {"up", "vertical"}
    learned.store.close()


def test_a_worker_that_was_killed_after_the_version_goes_on(learned: Desk) -> None:
    class_edits.start_forget(learned.console, "up", person="ann")
    job = learned.store.claim_job()
    assert job is not None
    learned.worker.forget(job)  # and killed before it said that the job is done
    learned.store.requeue()
    done = learned.work()
    assert done.result is not None
    assert done.result["version"] == ModelFolder(learned.model).current == 3
    assert [event.verb for event in learned.store.events(0)].count("forget") == 1
    assert [event.verb for event in learned.console.open(1).events].count("reopen") == 1
    learned.store.close()


def test_a_failed_edit_is_on_the_page(learned: Desk) -> None:
    class_edits.start_forget(learned.console, "up")
    ModelFolder(learned.model).rollback(1)  # meanwhile, by a command
    assert learned.work().status == "failed"
    problem = class_edits.find_problem(learned.console)
    assert problem is not None
    assert problem.startswith("The forget failed: 'up' is no class of")
    learned.store.close()


def test_two_people_edit_classes(console: Console, store: Store) -> None:
    with pytest.raises(BadInput, match="the model has 2 classes, and needs 2: it cannot forget"):
        class_edits.start_forget(console, "dog")
    store.put_fact("model", {**console.model(), "classes": ["cat", "dog", "pig"]})
    with pytest.raises(Conflict, match="the model has changed since"):
        class_edits.start_forget(console, "dog", seen=7)
    class_edits.start_forget(console, "dog", seen=1)
    with pytest.raises(BadInput, match="is being changed already"):
        class_edits.start_merge(console, "dog", into="cat", seen=1)
    (job,) = store.jobs()
    store.change_job(job.id, status="done")
    with pytest.raises(BadInput, match="same class"):
        class_edits.start_merge(console, "dog", into="dog")
    with pytest.raises(BadInput, match="into: the model has no class 'cow'"):
        class_edits.start_merge(console, "dog", into="cow")


def test_a_learner_that_cannot_says_so(console: Console, store: Store) -> None:
    store.put_fact("model", {**console.model(), "is_editable": False, "learner": "den"})
    with pytest.raises(BadInput, match="the learner 'den' cannot forget classes: fit another one"):
        class_edits.start_forget(console, "dog")
    with TestClient(make_app(console, Access()), base_url=URL) as client:
        page = client.get("/classes").text
        assert "Forget this class" not in page


def test_names_that_go_round_are_no_endless_loop() -> None:
    classes = Classes(["a"], renames=[{"b": "a"}], merges=[{"a": "b"}])
    assert classes.display_label("a")
    classes = Classes([], merges=[{"a": "b"}, {"b": "a"}])
    assert classes.present_key("a") == classes.present_key("b")
