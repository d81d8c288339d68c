"""Jobs that somebody cancels: while they wait, and while they run."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cilf.console.app import make_app
from cilf.console.cancellation import cancel_job
from cilf.console.guard import Access
from cilf.console.jobs import JOBS, Worker
from cilf.console.label_import import IMPORTS
from cilf.console.service import Conflict, Console
from cilf.console.store import CANCELLED, DONE, FAILED, PENDING, UNDONE, Job, Update
from cilf.core.progress import report

from .conftest import URL, list_clusters

LABELS = b"identity,label\ncow-30,cow\n"


def find_job(console: Console, number: int) -> Job:
    job = console.store.job(number)
    assert job is not None
    return job


def post_import(client: TestClient, content: bytes = LABELS) -> int:
    answer = client.post("/api/windows/1/labels", content=content)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["job"])


def test_a_job_that_waits_is_cancelled_at_once(client: TestClient, console: Console) -> None:
    number = post_import(client)
    assert client.post(f"/api/jobs/{number}/cancel").json() == {"job": number}
    told = client.get(f"/api/jobs/{number}").json()
    assert (told["status"], told["problem"]) == (CANCELLED, "it was cancelled.")
    assert console.store.claim_job() is None
    assert not list((console.store.folder / IMPORTS).iterdir())
    assert client.post(f"/api/jobs/{number}/cancel").status_code == 409
    assert client.post("/api/jobs/99/cancel").status_code == 404
    assert "cancel import" in [row.action for row in console.store.audit()]


def test_a_job_that_runs_ends_at_its_next_report(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, store = Worker(console.store, console.model_path), console.store
    reached: list[str] = []

    def work(worker: Worker, job: Job) -> dict[str, int]:
        reached.append("begun")
        report("one", 1, 2)
        cancel_job(console, job.id)
        try:
            report("two", 2, 2)
        except Exception:  # noqa: BLE001 - as code does that goes on after errors
            reached.append("caught")
        reached.append("ended")
        return {}

    monkeypatch.setitem(JOBS, "fit", work)
    number = store.add_job("fit")
    with TestClient(make_app(console, Access()), base_url=URL) as client:
        job = store.claim_job()
        assert job is not None
        worker.do(job)
        assert client.get("/api/jobs?active=true").json() == []
    assert reached == ["begun"]
    assert find_job(console, number).status == CANCELLED


def test_nothing_waits_for_a_job_that_was_cancelled(console: Console) -> None:
    store = console.store
    window = store.add_window("second", "nowhere", budget=1)
    cancel_job(console, store.add_job("detect", window))
    row = console.window(window)
    assert (row.status, row.facts["problem"]) == (FAILED, "it was cancelled.")
    cancel_job(console, store.add_job("detect", 1, again=True, person=""))
    assert console.window(1).status == DONE
    store.add_update(Update(7, 1, 2, 1, UNDONE, {}))
    cancel_job(console, store.add_job("rollback", 1, to=1, update=7))
    (update,) = store.updates()
    assert update.decision == PENDING


def test_a_killed_worker_s_job_stays_cancelled(console: Console) -> None:
    store = console.store
    number = store.add_job("import", 1, file="gone", format="csv", person="")
    assert store.claim_job() is not None
    cancel_job(console, number)
    store.requeue()
    job = store.claim_job()
    assert job is not None
    Worker(store, console.model_path).do(job)
    assert find_job(console, number).status == CANCELLED
    with pytest.raises(Conflict, match="has ended already"):
        cancel_job(console, number)
    assert list_clusters(console)[1][0] is None
