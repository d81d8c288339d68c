"""The worker's jobs on points in the plane: left and right are known, up and down are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from fastapi.testclient import TestClient

from cilf import workflow
from cilf.console import overview, updates
from cilf.console.app import make_app
from cilf.console.bodies import FitOptions
from cilf.console.gallery import encode_png
from cilf.console.guard import Access
from cilf.console.jobs import Worker
from cilf.console.log import LOGGER, WORKER, open_log
from cilf.console.service import Console
from cilf.console.store import DONE, Job, Store
from cilf.errors import BadInput
from cilf.workflow.versions import ModelFolder

from ..points import write_points
from .conftest import URL, act


class Desk:
    """A console and its worker in one process."""

    def __init__(self, folder: Path, model: Path | None = None) -> None:
        self.store = Store(folder)
        self.model = model or folder / "model"
        self.console = Console(self.store, self.model)
        self.worker = Worker(self.store, self.model)
        self.worker.publish_model()

    def work(self) -> Job:
        """Do the next job."""
        job = self.store.claim_job()
        assert job is not None
        self.worker.do(job)
        done = self.store.job(job.id)
        assert done is not None
        return done

    def name_clusters(self, window: int) -> None:
        """Name each cluster by the class of most of its members."""
        opened = self.console.open(window)
        for number in list(opened.state.clusters):
            ids = [opened.gallery.ids[row] for row in opened.state.members(number)]
            classes = [identity.partition("-")[0] for identity in ids]
            name = max(sorted(set(classes)), key=classes.count)
            act(self.console, window, "name", clusters=[number + 1], name=name)


def write_pictures(folder: Path, level: int, n: int) -> None:
    folder.mkdir(parents=True)
    for number in range(n):
        picture = np.full((8, 8), level, np.uint8)
        picture[number % 8, number // 8] = 128
        (folder / f"{number}.png").write_bytes(encode_png(picture))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    known = write_points(tmp_path / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    parameters = {"contamination": 0.05, "n_estimators": 30}
    workflow.fit(str(known), tmp_path / "model", learner="iforest", parameters=parameters)
    return Desk(tmp_path)


def test_a_store_that_was_moved_detects_again(tmp_path: Path) -> None:
    upload = tmp_path / "old" / "uploads" / "abc" / "new.csv"
    upload.parent.mkdir(parents=True)
    known = write_points(tmp_path / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    parameters = {"contamination": 0.05, "n_estimators": 30}
    workflow.fit(str(known), tmp_path / "old" / "model", learner="iforest", parameters=parameters)
    write_points(upload, {"left": 20, "up": 20}, 1)
    desk = Desk(tmp_path / "old")
    desk.console.add_upload(upload, "upload")
    assert desk.console.window(1).source == str(upload)
    assert desk.work().status == DONE
    desk.store.close()
    (tmp_path / "old").rename(tmp_path / "new")
    again = Desk(tmp_path / "new")
    again.console.detect_again(1)
    done = again.work()
    assert (done.status, done.problem) == (DONE, None)
    assert again.console.window(1).source == str(tmp_path / "new" / "uploads" / "abc" / "new.csv")
    again.store.close()


def test_a_model_is_fitted(tmp_path: Path) -> None:
    known = write_points(tmp_path / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    desk = Desk(tmp_path)
    with pytest.raises(BadInput, match="there is no model yet"):
        desk.console.add_window(str(known))
    options = FitOptions(learner="iforest", seed=5, label="label")
    updates.start_fit(desk.console, str(known), options)
    done = desk.work()
    assert done.status == "done", done.problem
    assert done.result is not None
    assert {label: one["n"] for label, one in done.result["classes"].items()} == {
        label: sum(row.values()) for label, row in done.result["confusion"].items()
    }
    for label, one in done.result["classes"].items():
        assert one["accuracy"] == done.result["confusion"][label].get(label, 0) / one["n"]
    assert ModelFolder.open(desk.model).learner().get_params()["seed"] == 5
    desk.worker.publish_choices()
    page = TestClient(make_app(desk.console, Access()), base_url=URL).get("/").text
    assert "Version 1 is fitted" in page
    assert desk.console.model()["classes"] == ["left", "right"]
    desk.store.close()


def test_no_file_is_run_because_a_request_names_it(tmp_path: Path) -> None:
    known = write_points(tmp_path / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    own = tmp_path / "own.py"
    own.write_text("raise SystemExit('it was run')\n")
    desk = Desk(tmp_path)
    updates.start_fit(desk.console, str(known), FitOptions(learner=f"{own}:Own"))
    done = desk.work()
    assert done.status == "failed"
    assert "learner" in (done.problem or "")
    desk.store.close()


def test_a_pickle_in_an_archive_is_refused(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, x=np.array([[{"a": 1}, 2.0]], dtype=object))
    window = desk.console.add_upload(path, "evil").id
    assert "Python objects" in (desk.work().problem or "")
    assert desk.console.window(window).status == "failed"
    desk.store.close()


def test_from_a_window_to_a_new_version_and_back(desk: Desk, tmp_path: Path) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 30, "down": 30}, 1)
    window = desk.console.add_window(str(new)).id
    assert desk.work().status == "done"
    facts = desk.console.window(window).facts
    assert facts["n"] == 100
    assert 55 <= facts["n_novel"] <= 65
    assert desk.console.open(window).gallery.form == "strips"
    places = desk.console.open(window).gallery.places
    assert places.shape == (100, 2)
    assert 0 <= places.min() <= places.max() <= 1

    desk.name_clusters(window)
    desk.console.rename("up", "above")
    job = updates.start_update(desk.console, window, person="ann")
    done = desk.work()
    assert done.status == "done", done.problem
    assert done.result is not None
    assert not done.result["refused"]
    (update,) = desk.store.updates()
    assert (update.job, update.version, update.before) == (job, 2, 1)
    assert set(desk.console.model()["classes"]) >= {"left", "right", "above"}
    assert desk.console.classes().display_label("above") == "above"
    assert desk.console.classes().key("above") == "up"

    later = write_points(tmp_path / "later.csv", {"left": 20, "right": 20, "up": 30}, 2)
    second = desk.console.add_window(str(later)).id
    assert desk.work().status == "done"
    assert workflow.predict(desk.model, later).counts["above"] >= 25
    drift = desk.console.window(second).facts["drift"]
    assert set(drift) >= {"left", "right"}
    assert max(drift["left"], drift["right"]) < 0.5

    updates.decide(desk.console, job, keep=False)
    assert desk.work().status == "done"
    assert desk.console.model()["version"] == 1
    assert not desk.console.classes().is_in_model("up")
    desk.store.close()


def test_a_class_called_as_files_say_left_out_is_in_the_model(desk: Desk, tmp_path: Path) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    window = desk.console.add_window(str(new)).id
    assert desk.work().status == "done"
    ids = desk.console.open(window).gallery.ids
    rows = [row for row, identity in enumerate(ids) if "up" in identity]
    with TestClient(make_app(desk.console, Access()), base_url=URL) as client:
        api = f"/api/windows/{window}"
        assert client.post(f"{api}/label", json={"rows": rows, "name": "-"}).status_code == 200
        assert client.post(f"{api}/update", json={}).status_code == 202
        done = desk.work()
        assert done.status == "done", done.problem
        assert client.get("/api/model").json()["classes"] == ["left", "right", "-"]
    desk.store.close()


def test_the_model_takes_over_a_new_name_in_its_update(desk: Desk, tmp_path: Path) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    for name, labels in (("west", ["up"]), ("sunset", ["up", "high"])):
        window = desk.console.add_window(str(new)).id
        assert desk.work().status == "done"
        opened = desk.console.open(window)
        ups = [identity for identity in opened.gallery.ids if "up" in identity][:30]
        named = {identity: labels[i % len(labels)] for i, identity in enumerate(ups)}
        desk.console.import_labels(window, named)
        desk.console.rename("left" if name == "west" else "west", name)
        updates.start_update(desk.console, window, force=True)
        done = desk.work()
        assert done.status == "done", done.problem
        assert desk.console.model()["classes"][0] == name
        assert workflow.predict(desk.model, new).counts[name] >= 15
        assert desk.console.classes().key(name) == "left"
        assert not desk.console.classes().renames
    listed = {known["name"]: known for known in overview.list_classes(desk.console)}
    assert (listed["sunset"]["since"], listed["sunset"]["n_labels"]) == (1, 48)
    assert listed["sunset"]["earlier"] == ["left", "west"]
    assert [len(listed[name]["counts"]) for name in ("sunset", "right", "up")] == [2, 2, 2]
    assert "west" in desk.console.window(window).facts["drift"]  # called "left" in the first one
    assert ModelFolder(desk.model).former_names() == {"left": "sunset", "west": "sunset"}
    ModelFolder(desk.model).rollback(1)
    assert "left" in workflow.predict(desk.model, new).counts
    desk.store.close()


def test_an_update_that_was_killed_after_the_version_was_written(
    desk: Desk, tmp_path: Path
) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    window = desk.console.add_window(str(new)).id
    desk.work()
    desk.name_clusters(window)
    number = updates.start_update(desk.console, window)
    job = desk.store.claim_job()
    assert job is not None
    desk.worker.update(job)
    desk.store.decide(number, "lost")  # whatever it said, the job is not done
    desk.store.requeue()
    done = desk.work()
    assert done.status == "done", done.problem
    assert done.result is not None
    assert done.result["version"] == ModelFolder(desk.model).current == 2
    desk.store.close()


def test_an_update_whose_last_sync_failed_is_an_update(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    window = desk.console.add_window(str(new)).id
    desk.work()
    desk.name_clusters(window)
    updates.start_update(desk.console, window)
    real = workflow.update

    def update_and_fail(*given: object, **options: object) -> None:
        real(*given, **options)  # type: ignore[arg-type]
        raise BadInput("cannot write to model (No space left on device): make room.")

    monkeypatch.setattr(workflow, "update", update_and_fail)
    done = desk.work()
    assert done.status == "done", done.problem
    assert [update.version for update in desk.store.updates()] == [2]
    assert ModelFolder(desk.model).current == 2
    desk.store.close()


def test_a_job_of_another_store_is_another_job(desk: Desk, tmp_path: Path) -> None:
    """Two stores count their jobs alike: the update of one is not the update of the other."""
    for folder, version in ((tmp_path / "one", 2), (tmp_path / "two", 3)):
        folder.mkdir()
        points = {"left": 20, "right": 20, "up": 40}
        new = write_points(folder / "new.csv", points, seed=version)
        other = Desk(folder, desk.model)
        window = other.console.add_window(str(new)).id
        other.work()
        clusters = [number + 1 for number in other.console.open(window).state.clusters]
        act(other.console, window, "name", clusters=clusters, name=f"from {folder.name}")
        updates.start_update(other.console, window, force=True)
        done = other.work()
        assert done.status == "done", done.problem
        assert done.result is not None
        assert (done.id, done.result["version"]) == (2, version)
        other.store.close()
    desk.store.close()


def test_detection_that_is_done_is_not_repeated(desk: Desk, tmp_path: Path) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    window = desk.console.add_window(str(new)).id
    job = desk.store.claim_job()
    assert job is not None
    desk.worker.detect(job)  # and killed before it said that the job is done
    findings = workflow.Findings(tmp_path / "windows/1/findings").id
    write_points(new, {"up": 3}, 2)  # people have named rows: other data must not come under them
    desk.store.requeue()
    assert desk.work().status == "done"
    assert desk.console.window(window).facts["n"] == 80
    assert workflow.Findings(tmp_path / "windows/1/findings").id == findings
    for _ in range(3):
        desk.store.change_job(job.id, status="running", attempts=3)
        desk.store.requeue()
    assert desk.console.window(window).status == "done"
    desk.store.close()


def test_a_rollback_that_fails_and_one_that_was_killed(desk: Desk, tmp_path: Path) -> None:
    new = write_points(tmp_path / "new.csv", {"left": 20, "right": 20, "up": 40}, 1)
    window = desk.console.add_window(str(new)).id
    desk.work()
    desk.name_clusters(window)
    number = updates.start_update(desk.console, window, force=True)
    assert desk.work().status == "done"
    updates.decide(desk.console, number, keep=False)
    with ModelFolder(desk.model).lock():
        assert "another command is changing" in (desk.work().problem or "")
    assert desk.store.updates()[0].decision == "pending"  # the model is where it was
    updates.decide(desk.console, number, keep=False)
    job = desk.store.claim_job()
    assert job is not None
    desk.worker.rollback(job)
    desk.store.requeue()
    assert desk.work().status == "done"
    assert desk.store.updates()[0].decision == "rolled back"
    assert [event.event for event in ModelFolder(desk.model).events()][-2:] == [
        "update",
        "rollback",
    ]
    desk.store.close()


def test_a_damaged_model_does_not_stop_the_worker(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = desk.model / "log.jsonl"
    content = log.read_bytes()
    log.unlink()
    again = Desk(tmp_path)
    again.worker.publish_model()
    assert caplog.text.count("is damaged") == 1
    log.write_bytes(content)
    again.worker.publish_model()
    assert again.console.model()["version"] == 1
    again.store.close()
    desk.store.close()


def test_data_that_cannot_be_read_fails_in_one_line(desk: Desk, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("id,colour\na,red\n")
    window = desk.console.add_window(str(bad)).id
    done = desk.work()
    assert done.status == "failed"
    assert done.problem
    assert desk.console.window(window).status == "failed"
    desk.store.close()


def test_a_table_names_no_image_outside_of_what_may_be_read(tmp_path: Path) -> None:
    """Whatever a cell looks like: the rule holds when the image is opened."""
    allowed = tmp_path / "data"
    for label in ("dark", "light"):
        write_pictures(allowed / "photos" / label, 255 * (label == "light"), n=12)
    write_pictures(tmp_path / "private", 128, n=3)
    (allowed / "link.png").symlink_to(tmp_path / "private" / "0.png")
    workflow.fit(str(allowed / "photos"), tmp_path / "model", learner="iforest")
    names = ["../private/1.png/", "../private/2.png/.", "link.png", "photos/dark/0.png"]
    rows = "\n".join(json.dumps({"image": name}) for name in names)
    (allowed / "rows.jsonl").write_text(rows + "\n")
    desk = Desk(tmp_path)
    desk.worker.roots = [allowed]
    desk.console.add_window(str(allowed / "rows.jsonl"))
    done = desk.work()
    assert done.status == "done", done.problem
    assert desk.console.open(1).gallery.ids == ["photos/dark/0.png"]
    desk.store.close()


def test_what_fails_unexpectedly_is_in_the_log(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    handler = open_log(tmp_path, WORKER)
    monkeypatch.setattr(workflow, "detect", fail)
    desk.console.add_window(str(tmp_path / "known.csv"))
    done = desk.work()
    LOGGER.removeHandler(handler)
    handler.close()
    assert done.problem == "it failed unexpectedly: worker.log in the store says why."
    written = (tmp_path / WORKER).read_text()
    assert "Traceback" in written
    assert "ZeroDivisionError: a mistake of ours" in written
    desk.store.close()
