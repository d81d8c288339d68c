from __future__ import annotations

import csv
import io
import json

from fastapi.testclient import TestClient

from cilf.console.app import make_app
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store

from .conftest import COWS, URL, post


def read_log(client: TestClient) -> list[dict[str, str]]:
    content = client.get("/api/audit?format=csv").content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content)))


def test_the_log_says_who_did_what_and_from_where(client: TestClient, store: Store) -> None:
    post(client, "name", clusters=[COWS], name="=cow()", person="Ann")
    post(client, "undo", person="Bob")
    client.put("/api/windows/1/budget", json={"budget": 3}, headers={"X-Person": "J%C3%BCrgen"})
    client.post("/api/windows/1/name", json={"clusters": [99], "name": "x"})  # refused
    lines = read_log(client)
    told = [(line["person"], line["window"], line["action"], line["description"]) for line in lines]
    assert told == [
        ("Ann", "", "new class", "name =cow()"),
        ("Ann", "1", "name", "named cluster 1 “=cow()”"),
        ("Bob", "1", "undo", "undid name"),
        ("Jürgen", "1", "budget", "budget 3"),
        ("", "", "new class", "name x"),
    ]
    assert {line["address"] for line in lines} == {"testclient"}
    assert all(line["time"].endswith("+00:00") for line in lines)
    rows = [json.loads(line) for line in client.get("/api/audit?format=jsonl").text.splitlines()]
    assert rows[1]["about"] == {"clusters": [COWS], "name": "=cow()"}


def test_cells_are_not_formulas(client: TestClient) -> None:
    headers = {"X-Person": "%3DHYPERLINK(1)"}
    client.put("/api/windows/1/budget", json={"budget": 3}, headers=headers)
    assert read_log(client)[0]["person"] == "'=HYPERLINK(1)"
    assert b",=HYPERLINK(1)," in client.get("/api/audit?raw=true").content


def test_log_ins_are_logged(console: Console) -> None:
    with TestClient(make_app(console, Access(token="secret-token")), base_url=URL) as client:
        client.post("/login", data={"token": "wrong-token"})
        client.post("/login", data={"token": "secret-token"}, follow_redirects=False)
        shown = {"authorization": "Bearer secret-token"}
        log = client.get("/api/audit", headers=shown).text
        assert client.get("/api/audit").status_code in (200, 401)
    assert "wrong token" in log
    assert "log in" in log
    assert "secret" not in log


def test_windows_that_are_renamed_archived_or_deleted_are_logged(
    client: TestClient, store: Store
) -> None:
    client.put("/api/windows/1/name", json={"name": "second"}).raise_for_status()
    client.put("/api/windows/1/archived", json={"archived": True}).raise_for_status()
    client.post("/api/windows/1/delete", json={}).raise_for_status()
    assert [(row.action, dict(row.about)) for row in store.audit()] == [
        ("rename window", {"old": "first", "new": "second"}),
        ("archive window", {}),
        ("delete window", {"name": "second"}),
    ]


def test_jobs_are_logged(console: Console, store: Store) -> None:
    store.add_job("update", 1, person="Ann")
    (row,) = store.audit()
    assert (row.action, row.window, row.person) == ("queue update", 1, "Ann")
