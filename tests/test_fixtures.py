"""What earlier versions of cilf have written can be opened and used.

``tests/fixtures`` has a folder for each version, made once by ``make.py`` with the cilf of that
version.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cilf
from cilf import workflow
from cilf.data import load_instances
from cilf.errors import BadInput
from cilf.evaluate import RunFolder, records
from cilf.learners import persistence
from cilf.report import write_report
from cilf.serving import watch_state
from cilf.workflow import findings, model_log
from cilf.workflow.versions import ModelFolder

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(made.parent.name for made in FIXTURES.glob("*/made.json"))


@pytest.fixture(params=VERSIONS)
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a version, to work on."""
    folder = tmp_path / "made"
    shutil.copytree(FIXTURES / request.param, folder)
    monkeypatch.chdir(folder)
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_fixtures_say_which_version_made_them(made: Path, request: Any) -> None:
    about = read(made / "made.json")
    assert about["version"] == request.node.callspec.params["made"]
    assert set(about["versions"]) >= {"python", "cilf", "torch", "numpy"}
    assert about["formats"] == {
        "model": read_lines(made / "model" / "log.jsonl")[0]["format"],
        "learner": read(made / "model" / "versions" / "0002" / "model.json")["format"],
        "findings": read(made / "findings" / "findings.json")["format"],
        "run": read(made / "run" / "run.json")["format"],
        "store": read_user_version(made / "store" / "console.sqlite"),
        "backup": 2,
        "stream": read_user_version(made / "stream" / "watch.sqlite"),
    }


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_user_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        return int(version)


def test_every_present_format_has_a_fixture() -> None:
    """Whoever changes a format makes fixtures of the new one before it is released."""
    store = pytest.importorskip("cilf.console.store")
    backup = pytest.importorskip("cilf.console.backup")
    present = {
        "model": model_log.FORMAT, "learner": persistence.FORMAT, "findings": findings.FORMAT,
        "run": records.FORMAT, "store": store.FORMAT, "backup": backup.BACKUP_FORMAT,
        "stream": watch_state.FORMAT,
    }  # fmt: skip
    newest = {
        name: max(read(FIXTURES / version / "made.json")["formats"][name] for version in VERSIONS)
        for name in present
    }
    assert newest == present
    page = (FIXTURES.parents[1] / "docs" / "formats.md").read_text()
    rows = re.findall(r"^\| (\w+) \|.*\| (\d+) \| ([\d, ]+) \|$", page, re.MULTILINE)
    assert {name: int(writes) for name, writes, _ in rows} == present
    for name, writes, reads in rows:
        written = {str(read(FIXTURES / v / "made.json")["formats"][name]) for v in VERSIONS}
        assert written | {writes} <= set(reads.split(", "))


# ----------------------------------------------------------------- models and findings


def test_a_model_predicts_what_it_predicted(made: Path) -> None:
    assert ModelFolder.open(made / "model").verify().unsealed == []
    predicted = workflow.predict(made / "model", "data/later.npz").labels
    assert predicted.tolist() == read(made / "data" / "predicted.json")


def test_a_model_goes_on(made: Path) -> None:
    model = made / "model"
    found = workflow.detect(model, "data/later.npz", made / "found")
    rows = np.arange(28, 42)  # the digit 3
    labels = {str(found.assignments.ids[row]): "three" for row in rows}
    updated = workflow.update(model, found, labels, force=True)
    assert updated.event is not None
    assert (updated.event.version, updated.event.about["new_classes"]) == (3, ["three"])
    workflow.rename(model, "two", "zwei")
    assert ModelFolder.open(model).classes(4) == ["0", "1", "zwei", "three"]
    workflow.rebuild(model)
    ModelFolder.open(model).rollback(1)
    assert workflow.describe(model).to_json()["current"] == 1
    ModelFolder.open(model).verify()


def test_a_single_version_is_a_learner(made: Path) -> None:
    learner = cilf.load(made / "model" / "versions" / "0002")
    with np.load(made / "data" / "known.npz") as known:
        X, y = known["X"], known["y"]
    learner.update(X[:4], np.array(["0", "0", "new", "new"]))
    assert list(learner.classes_) == ["0", "1", "two", "new"]
    assert len(learner.predict(X)) == len(y)


def test_findings_can_be_learned(made: Path) -> None:
    ModelFolder.open(made / "model").rollback(1)
    found, labels = workflow.read_labels(made / "findings")
    assert set(labels.values()) == {"two"}
    updated = workflow.update(made / "model", found, labels, force=True)
    assert updated.event is not None
    assert updated.event.about["new_classes"] == ["two"]
    workflow.split_cluster(made / "findings", 1, 2)
    assert len(workflow.Findings.open(made / "findings").assignments.cluster_sizes) == 2


# ----------------------------------------------------------------- runs


def test_a_run_is_reported_and_resumed(made: Path, run: Any) -> None:
    before = RunFolder.open(made / "run").read_records()
    assert [record.window for record in before] == [1, 2]
    assert "iforest" in write_report(made / "run").read_text()
    about = RunFolder.open(made / "run").read_run()
    given = [f"--{name}={about[name]}" for name in ("learner", "data", "scenario", "seed")]
    changes = [part for change in about["changes"] for part in ("--set", change)]
    assert run("run", *given, *changes, "--out", str(made / "run"), "--resume").code == 0
    after = RunFolder.open(made / "run").read_records()
    assert after[:2] == before
    assert [record.window for record in after] == [1, 2, 3, 4, 5]


# ----------------------------------------------------------------- stores


def test_a_store_opens_and_is_used(made: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from cilf.console import updates, window_view
    from cilf.console.bodies import VerbBody
    from cilf.console.jobs import Worker
    from cilf.console.service import Console
    from cilf.console.store import Store
    from cilf.console.verbs import VERBS, describe_event

    store = Store(made / "store")
    console, worker = Console(store, made / "store" / "model"), Worker(store, made / "store/model")
    worker.publish_model()
    assert [row.name for row in store.windows()] == ["monday", "tuesday"]
    assert store.archived_windows() == {1}
    history = [describe_event(event.verb, event.about) for event in store.events(1)]
    assert history == ["named cluster 1 “zwei”", "rejected cluster 1", "undid reject"]
    first = window_view.list_clusters(console, 1)[0]
    assert (first["name"], first["status"]) == ("two", "open")
    assert console.open(2).gallery.thumb(0).startswith(b"\x89PNG")
    assert console.open(2).state.opinions == {0: ""}
    (update,) = store.updates()
    assert (update.window, update.version, update.decision) == (1, 2, "kept")
    assert Path(console.window(2).source) == made / "store" / "uploads" / "a1" / "later.npz"

    def work() -> str:
        job = store.claim_job()
        assert job is not None
        worker.do(job)
        done = store.job(job.id)
        assert done is not None
        return done.status

    assert work() == "cancelled"
    learn = updates.start_update(console, 2, force=True)
    assert work() == "done"
    updates.decide(console, learn, keep=False)
    assert work() == "done"
    console.detect_again(2)
    assert work() == "done"
    assert set(console.open(2).labels.values()) == {"three"}
    body: VerbBody = VERBS["name"].body.model_validate({"clusters": [1], "name": "four"})
    console.act(1, "name", body)
    console.undo(1)
    assert len(store.audit()) > 10
    store.close()


def test_a_backup_is_restored(made: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from cilf.console.backup import restore
    from cilf.console.store import Store

    counts = restore(made / "backup.tar", made / "restored")
    assert (counts["windows"], counts["events"]) == (1, 1)
    store = Store(made / "restored")
    assert [row.name for row in store.windows()] == ["monday"]
    assert [event.about for event in store.events(0)] == [{"name": "cow"}]
    store.close()


# ----------------------------------------------------------------- watched streams


def test_a_watched_stream_goes_on(made: Path) -> None:
    state = watch_state.WatchState(made / "stream", most=100)
    assert state.n_waiting == 42  # the others are in a window that is done
    assert state.take(load_instances("data/new.npz")) == 0
    assert state.n_waiting == 42
    assert state.start_window(at_least=1) == 2
    state.close()


def test_the_state_of_a_newer_stream_is_refused(made: Path) -> None:
    with closing(sqlite3.connect(made / "stream" / "watch.sqlite")) as database:
        database.execute(f"PRAGMA user_version = {watch_state.FORMAT + 1}")
    with pytest.raises(BadInput, match=r"has format 2, and this cilf reads 1: .* update cilf"):
        watch_state.WatchState(made / "stream", most=100)
