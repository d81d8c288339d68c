"""Windows that are detected again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from fastapi.testclient import TestClient

from cilf.console import updates, window_view
from cilf.console.app import make_app
from cilf.console.detections import carry_over
from cilf.console.guard import Access
from cilf.console.service import Conflict, Console
from cilf.console.state import KNOWN, REJECTED, SKIPPED, Cluster, Patch, State
from cilf.errors import BadInput

from ..points import write_points
from .conftest import URL, act
from .test_jobs import Desk, desk

__all__ = ["desk"]

POINTS = {"left": 20, "right": 20, "up": 30, "down": 30}


@pytest.fixture
def shown(desk: Desk, tmp_path: Path) -> Iterator[Desk]:
    """Window 1, in which the upper points have a name."""
    new = write_points(tmp_path / "new.csv", POINTS, 1)
    desk.console.add_window(str(new))
    desk.work()
    act(desk.console, 1, "label", rows=rows_of(desk, "up"), name="up", person="ann")
    yield desk
    desk.store.close()


def rows_of(desk: Desk, name: str) -> list[int]:
    ids = desk.console.open(1).gallery.ids
    return [row for row, identity in enumerate(ids) if identity.startswith(name)]


def labels(console: Console) -> dict[str, str]:
    """The label of each identity that has one."""
    opened = console.open(1)
    return {opened.gallery.ids[row]: key for row, key in opened.labels.items()}


def test_labels_are_carried_over_and_the_former_detection_comes_back(shown: Desk) -> None:
    before, clusters = labels(shown.console), window_view.list_clusters(shown.console, 1)
    assert len(before) == 30
    source = Path(shown.console.window(1).source)
    lines = source.read_text().splitlines()
    gone = [line for line in lines if not line.startswith(("up-0,", "left-0,"))]
    source.write_text("\n".join([gone[0], *reversed(gone[1:])]) + "\n")
    assert shown.console.detect_again(1, "bob").id == 1
    with pytest.raises(Conflict, match="is being detected already"):
        shown.console.detect_again(1)
    assert shown.work().status == "done"
    assert [row.id for row in shown.store.windows()] == [1]
    assert labels(shown.console) == {i: name for i, name in before.items() if i != "up-0"}
    assert shown.console.window(1).facts["n"] == 98
    event = shown.console.open(1).events[-1]
    assert (event.person, dict(event.about)) == ("bob", {"version": 1, "n_labels": 29, "n_lost": 1})
    again = Console(shown.store, shown.model)
    assert labels(again) == labels(shown.console)
    with pytest.raises(Conflict, match="the window was detected again: check it first"):
        act(shown.console, 1, "move", rows=[0], to="new", version=1)
    with pytest.raises(Conflict, match="undo that first"):
        shown.console.undo(1, 1)
    shown.console.undo(1)
    assert labels(shown.console) == before
    assert shown.console.window(1).facts["n"] == 100
    assert [one["name"] for one in window_view.list_clusters(shown.console, 1)] == [
        one["name"] for one in clusters
    ]
    assert labels(Console(shown.store, shown.model)) == before
    shown.console.undo(1)  # the label, as before
    assert labels(again) == labels(shown.console) == {}


def test_what_came_after_is_undone_first(shown: Desk) -> None:
    shown.console.detect_again(1)
    shown.work()
    down = act(shown.console, 1, "label", rows=rows_of(shown, "down"), name="down")
    with pytest.raises(Conflict, match="undo what came later first"):
        shown.console.undo(1, down.seq - 1)
    shown.console.undo(1)
    shown.console.undo(1)
    assert len(labels(shown.console)) == 30


def test_what_the_model_learned_is_known_and_not_asked_for_again(shown: Desk) -> None:
    updates.start_update(shown.console, 1, force=True)
    assert shown.work().status == "done"
    shown.console.detect_again(1)
    shown.work()
    opened = shown.console.open(1)
    ups = rows_of(shown, "up")
    assert (opened.state.cluster_of[ups] == KNOWN).all()
    described = window_view.describe_instances(shown.console, 1, ups[:1])
    assert (described[0]["nearest"], described[0]["source"]) == ("up", "person")
    asked = window_view.suggest_queries(shown.console, 1, "representative")["rows"]
    assert not set(asked) & set(ups)
    act(shown.console, 1, "label", rows=rows_of(shown, "down"), name="down")
    updates.start_update(shown.console, 1, force=True)
    done = shown.work()
    assert done.status == "done", done.problem
    assert shown.console.model()["classes"] == ["left", "right", "up", "down"]


def test_a_killed_worker_shows_the_detection_once(shown: Desk) -> None:
    shown.console.detect_again(1)
    job = shown.store.claim_job()
    assert job is not None
    shown.worker.detect(job)  # and killed before it said that the job is done
    shown.store.requeue()
    assert shown.work().status == "done"
    assert [event.verb for event in shown.console.open(1).events] == ["label", "detect again"]


def test_a_detection_that_fails_leaves_the_former_one(shown: Desk) -> None:
    Path(shown.console.window(1).source).unlink()
    shown.console.detect_again(1)
    assert shown.work().status == "failed"
    assert shown.console.window(1).status == "done"
    assert len(labels(shown.console)) == 30
    with TestClient(make_app(shown.console, Access()), base_url=URL) as client:
        assert "could not be detected again" in client.get("/windows/1").text
        assert client.post("/api/windows/1/again", json={"person": "ann"}).status_code == 202
        assert client.post("/api/windows/9/again").status_code == 404


def test_a_first_detection_that_failed_is_tried_again(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("nonsense")
    desk.console.add_window(str(tmp_path / "new.csv"))
    assert desk.work().status == "failed"
    write_points(tmp_path / "new.csv", {"left": 20, "up": 20}, 1)
    desk.console.detect_again(1)
    assert desk.work().status == "done"
    assert desk.console.window(1).facts["n"] == 40
    assert not desk.console.open(1).events
    with pytest.raises(BadInput, match="nothing to undo"):
        desk.console.undo(1)
    desk.store.close()


def test_every_answer_is_carried_over() -> None:
    found = np.array([KNOWN, 0, 0, 1, 1, 2, 2, 3])
    old = State(found)
    old.apply(
        Patch(
            {
                0: (Cluster(), Cluster("cat")),
                1: (Cluster(), Cluster(None, REJECTED)),
                2: (Cluster(), Cluster("dog", SKIPPED)),
            }
        )
    )
    known = Patch.from_json(
        {"clusters": {"3": [Cluster().to_json(), None]},
         "moves": [{"rows": [7], "from": 3, "to": KNOWN}]}
    )  # fmt: skip
    old.apply(known)
    cluster = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    row_of = np.array([7, 0, 1, 2, 3, 4, -1, 5])
    carried = carry_over(old, found, cluster, row_of, settled={1: "cat"})
    assert (carried.n_labels, carried.n_lost) == (2, 0)
    state = State(cluster)
    state.apply(carried.patch)
    assert state.cluster_of.tolist() == [2, 0, 3, 3, 4, KNOWN, 1, 1]
    assert {number: state.clusters[number] for number in (2, 3, 4)} == {
        2: Cluster("cat"), 3: Cluster(None, REJECTED), 4: Cluster("dog", SKIPPED),
    }  # fmt: skip
