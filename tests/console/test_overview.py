from __future__ import annotations

from fastapi.testclient import TestClient

from cilf.console.service import Console

from .conftest import (
    COWS,
    post,
    put_window,
)


def test_stream_and_classes(client: TestClient, console: Console) -> None:
    post(client, "name", clusters=[COWS], name="cow")
    put_window(console, "second")
    one, two = client.get("/api/stream").json()
    assert (one["came"], one["vanished"]) == (["cow"], [])
    assert (two["came"], two["vanished"]) == ([], ["cow"])
    client.post("/api/classes/rename", json={"old": "cow", "new": "cattle"})
    listed = {c["name"]: c for c in client.get("/api/classes").json()["classes"]}
    assert set(listed) == {"cat", "dog", "cattle"}
    assert listed["cattle"]["earlier"] == ["cow"]
    assert listed["cattle"]["counts"] == [{"window": 1, "n": 12}]
    assert client.post("/api/classes/undo", json={}).status_code == 200
    assert client.get("/api/stream").json()[0]["came"] == ["cow"]
