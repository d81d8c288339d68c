from __future__ import annotations

from fastapi.testclient import TestClient

from cilf.console.presence import EXPIRES, Presence


def test_people_are_gone_some_seconds_after_their_last_sign() -> None:
    now = 0.0
    presence = Presence(lambda: now)
    presence.look("page-one", "Ann", 1, 2)
    presence.look("page-two", "Cid", 2, None)
    now = EXPIRES - 1
    assert [one.person for one in presence.look("page-tre", "Bob", 1, None)] == ["Ann"]
    now = EXPIRES + 1
    assert presence.look("page-tre", "Bob", 1, None) == []
    assert presence.look("page-for", "Bob", 1, None) == []  # another page of the same person


def test_presence_by_rest(client: TestClient) -> None:
    def look(page: str, person: str, cluster: int | None) -> object:
        body = {"page": page, "person": person, "cluster": cluster}
        return client.post("/api/windows/1/presence", json=body).json()

    assert look("page-ann", "Ann", 2) == []
    assert look("page-bob", "", None) == [{"person": "Ann", "cluster": 2}]
    assert look("page-ann", "Ann", 1) == [{"person": "somebody", "cluster": None}]
    body = {"page": "page-bob"}
    assert client.post("/api/windows/9/presence", json=body).status_code == 404
