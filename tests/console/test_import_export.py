from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient

from .conftest import (
    COWS,
    HENS,
    post,
)


@pytest.mark.parametrize("format", ["csv", "jsonl", "label-studio"])
def test_labels_go_out_and_come_back(client: TestClient, format: str) -> None:
    post(client, "name", clusters=[COWS], name="cow, brown")
    post(client, "name", clusters=[HENS], name="Hühner")
    told = client.get(f"/api/windows/1/labels?format={format}").content
    for _ in range(2):
        post(client, "undo")
    query = f"/api/windows/1/labels?format={format}"
    taken = client.post(query, content=told, headers={"content-type": "application/json"}).json()
    assert taken["labels"] == 20
    assert client.get(query).content.count(b"cow, brown") == told.count(b"cow, brown")
    assert client.post(query, content=told).json()["labels"] == 0


def test_a_table_of_findings_says_the_same_as_on_the_command_line(client: TestClient) -> None:
    """The label of a known instance is what the model says; what people write is its name."""
    table = (
        "identity,label,novelty,cluster,name\n"
        "cow-30,,0.9,1,cow\ncow-31,calf,0.8,1,\ncow-32,,0.7,1,\ncow-33,,0.7,1,-\n"
        "cat-0,cat,0.1,,\ncat-1,cat,0.1,,dog\n"
    )
    taken = client.post("/api/windows/1/labels", content=table.encode()).json()
    assert taken["labels"] == 3
    rows = client.get("/api/windows/1/labels?format=jsonl").text.splitlines()
    labels = {row["identity"]: row["label"] for row in map(json.loads, rows) if row["label"]}
    assert labels == {"cow-30": "cow", "cow-31": "calf", "cat-1": "dog"}


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
def test_labels_that_cannot_be_read(client: TestClient, format: str, content: bytes) -> None:
    answer = client.post(f"/api/windows/1/labels?format={format}", content=content)
    assert answer.status_code == 400
    assert answer.json()["detail"]
