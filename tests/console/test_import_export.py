from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cilf.console.jobs import Worker
from cilf.console.label_import import IMPORTS
from cilf.console.service import Console
from cilf.console.store import DONE, FAILED

from .conftest import COWS, HENS, post, restart


def import_labels(client: TestClient, console: Console, content: bytes, format: str = "csv") -> Any:
    """Import labels, and let a worker do it. Returns the job as REST describes it."""
    query = f"/api/windows/1/labels?format={format}&person=Ann"
    answer = client.post(query, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 202, answer.text
    job = console.store.claim_job()
    assert job is not None
    assert job.id == answer.json()["job"]
    Worker(console.store, console.model_path).do(job)
    assert not list((console.store.folder / IMPORTS).iterdir())
    return client.get(f"/api/jobs/{job.id}").json()


@pytest.mark.parametrize("format", ["csv", "jsonl", "label-studio"])
def test_labels_go_out_and_come_back(client: TestClient, console: Console, format: str) -> None:
    post(client, "name", clusters=[COWS], name="cow, brown")
    post(client, "name", clusters=[HENS], name="Hühner")
    told = client.get(f"/api/windows/1/labels?format={format}").content
    for _ in range(2):
        post(client, "undo")
    query = f"/api/windows/1/labels?format={format}"
    taken = import_labels(client, console, told, format)
    assert (taken["status"], taken["result"]["labels"]) == (DONE, 20)
    assert taken["result"]["version"] == 5
    assert client.get(query).content.count(b"cow, brown") == told.count(b"cow, brown")
    assert import_labels(client, console, told, format)["result"]["labels"] == 0
    assert client.get("/api/windows/1/events?after=4").json()[0]["person"] == "Ann"
    post(client, "undo")
    assert b"cow, brown" not in client.get(query).content


def test_a_job_imports_its_labels_once(console: Console) -> None:
    """A worker may be killed after it has written them."""
    labels = {"cow-30": "cow", "hen-42": "hen"}
    event = console.import_labels(1, labels, job=4)
    console.undo(1)
    assert restart(console).import_labels(1, labels, job=4) == event
    assert len(console.store.events(1)) == 2


def test_a_table_of_findings_says_the_same_as_on_the_command_line(
    client: TestClient, console: Console
) -> None:
    """The label of a known instance is what the model says; what people write is its name."""
    table = (
        "identity,label,novelty,cluster,name\n"
        "cow-30,,0.9,1,cow\ncow-31,calf,0.8,1,\ncow-32,,0.7,1,\ncow-33,,0.7,1,-\n"
        "cat-0,cat,0.1,,\ncat-1,cat,0.1,,dog\n"
    )
    assert import_labels(client, console, table.encode())["result"]["labels"] == 3
    rows = client.get("/api/windows/1/labels?format=jsonl").text.splitlines()
    labels = {row["identity"]: row["label"] for row in map(json.loads, rows) if row["label"]}
    assert labels == {"cow-30": "cow", "cow-31": "calf", "cat-1": "dog"}


def test_cells_that_spreadsheets_compute(client: TestClient, console: Console) -> None:
    post(client, "name", clusters=[COWS], name="=1+1")
    plain = client.get("/api/windows/1/labels").content
    assert b"cow-30,'=1+1," in plain
    assert b"cow-30,=1+1," in client.get("/api/windows/1/labels?raw=true").content
    assert import_labels(client, console, plain)["result"]["labels"] == 0


def test_label_studio_tasks(client: TestClient) -> None:
    post(client, "name", clusters=[COWS], name="cow")
    tasks = client.get("/api/windows/1/labels?format=label-studio").json()
    assert tasks[0]["predictions"][0]["result"][0]["value"] == {"choices": ["cat"]}
    assert tasks[30]["annotations"][0]["result"][0]["value"] == {"choices": ["cow"]}
    assert client.get(tasks[30]["data"]["image"]).headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", b"a,b\n1,2\n"),
        ("csv", b"identity,label\nowl,owl\n"),
        ("csv", b"\xff\xfe\xff"),
        ("csv", b"identity,label\ncow-30,cow\ncow-30,calf\n"),
        ("csv", b"identity,label,cluster,name\ncow-30,cow,1,calf\n"),
        ("jsonl", b'{"identity": "cow-30", "label": "a"}\n{"identity": "cow-30", "label": "b"}'),
        ("jsonl", b"[1]\n"),
        ("jsonl", b'{"identity": {}, "label": "x"}\n'),
        ("jsonl", b'{"identity": "cow-30", "label": "CAT"}\n'),
        ("label-studio", b"{}"),
        ("label-studio", b"[1]"),
        ("label-studio", b"[" * 100_000),
    ],
)
def test_labels_that_cannot_be_read(
    client: TestClient, console: Console, format: str, content: bytes
) -> None:
    job = import_labels(client, console, content, format)
    assert job["status"] == FAILED
    assert job["problem"]
    assert "unexpectedly" not in job["problem"]
