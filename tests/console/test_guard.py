from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cilf.console import guard
from cilf.console.app import make_app
from cilf.console.guard import MAX_BODY, MAX_IMPORT, Access, WrongTokens
from cilf.console.service import Console

from .conftest import (
    COWS,
    URL,
    get_clusters,
)


def test_other_hosts_are_refused(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:8377", "", "127.0.0.1.evil.example", "[::1"):
        assert client.get("/", headers={"host": host}).status_code == 403, host
    for host in ("localhost:1", "127.0.0.1", "[::1]:8377"):
        assert client.get("/", headers={"host": host}).status_code == 200, host


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_other_sites_cannot_change_anything(client: TestClient, headers: dict[str, str]) -> None:
    body = {"clusters": [COWS], "name": "cow"}
    answer = client.post("/api/windows/1/name", json=body, headers=headers)
    assert answer.status_code == 403
    assert get_clusters(client)[COWS][0] is None


def test_other_sites_cannot_look_but_people_may_follow_links(client: TestClient) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert client.get("/api/windows", headers=foreign).status_code == 403
    assert client.get("/", headers=foreign | {"sec-fetch-mode": "navigate"}).status_code == 200
    own = {"origin": URL, "sec-fetch-site": "same-origin"}
    body = {"clusters": [COWS], "name": "cow"}
    assert client.post("/api/windows/1/name", json=body, headers=own).status_code == 200


def test_with_a_token_a_server_in_front_may_have_another_name(console: Console) -> None:
    shown = {"authorization": "Bearer secret-token", "host": "labels.example"}
    with TestClient(make_app(console, Access(token="secret-token")), base_url=URL) as client:
        assert client.get("/api/windows", headers=shown).status_code == 200
        foreign = shown | {"origin": "https://evil.example"}
        assert client.post("/api/windows/1/undo", json={}, headers=foreign).status_code == 403


def test_a_token_is_demanded(console: Console) -> None:
    app = make_app(console, Access("0.0.0.0", "secret-token"))
    with TestClient(app, base_url="http://box:8377", follow_redirects=False) as client:
        assert client.get("/api/windows").status_code == 401
        assert client.get("/").headers["location"] == "/login"
        for wrong in ("Bearer wrong", "Basic secret-token", "Bearer", "Bearer sécret"):
            shown = {"authorization": wrong.encode()}
            assert client.get("/api/windows", headers=shown).status_code == 401  # type: ignore[arg-type]
        shown = {"authorization": b"Bearer secret-token"}
        assert client.get("/api/windows", headers=shown).status_code == 200  # type: ignore[arg-type]
        assert client.get("/").status_code == 303
        entered = client.post("/login", data={"token": "secret-token"})
        assert "httponly" in entered.headers["set-cookie"].lower()
        assert "secret-token" not in entered.headers["set-cookie"]
        assert client.get("/").status_code == 200
        assert client.get("/static/console.css").status_code == 200


def test_pages_may_not_be_framed_and_run_no_foreign_script(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_bodies_have_a_limit(client: TestClient) -> None:
    answer = client.post(
        "/api/windows/1/name", content=b"x", headers={"content-length": str(1 << 40)}
    )
    assert answer.status_code == 413


def test_a_request_without_a_file_is_small(client: TestClient) -> None:
    """Its JSON is parsed while all others wait."""
    for path, limit in (("/api/windows/1/move", MAX_BODY), ("/api/windows/1/labels", MAX_IMPORT)):
        headers = {"content-length": str(limit + 1)}
        assert client.post(path, content=b"x", headers=headers).status_code == 413
    rows = list(range(100_000, 200_000))  # as many as a person may choose at once
    answer = client.post("/api/windows/1/move", json={"rows": rows, "to": "new"})
    assert answer.status_code == 400, answer.text
    assert "row 100000 does not exist" in answer.json()["detail"]


def test_whoever_gives_wrong_tokens_has_to_wait(console: Console) -> None:
    """However they are given, and at once: nothing waits for the answer."""
    now = [0.0]
    access = Access("0.0.0.0", "secret-token", WrongTokens(lambda: now[0]))
    app = make_app(console, access)
    right = {"authorization": "Bearer secret-token"}
    with TestClient(app, base_url="http://box:8377", follow_redirects=False) as client:
        for _ in range(2):
            assert client.post("/login", data={"token": "wrong"}).status_code == 401
        for _ in range(3):
            wrong = client.get("/api/windows", headers={"authorization": "Bearer wrong"})
            assert wrong.json()["detail"] == "the token is wrong."
        waits = client.get("/api/windows", headers=right)
        assert (waits.status_code, waits.json()["detail"]) == (
            401, "too many wrong tokens: try again in 1 s.",
        )  # fmt: skip
        assert "Too many wrong tokens" in client.post("/login", data={"token": "x"}).text
        now[0] += 1.0
        assert client.get("/api/windows", headers=right).status_code == 200
        client.cookies.set(access.cookie, access.proof)
        for _ in range(9):
            client.post("/login", data={"token": "wrong"})
        assert client.get("/api/windows").status_code == 200  # who is in stays in


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_ADDRESSES", 2)
    wrong = WrongTokens(lambda: 0.0)
    for address in ("a", "b", "c"):
        for _ in range(9):
            wrong.add(address)
    assert [wrong.seconds_left(address) > 0 for address in "abc"] == [False, True, True]
    for _ in range(99):
        wrong.add("b")
    assert wrong.seconds_left("b") == guard.LONGEST_WAIT


def test_the_cookie_is_for_tls_only_behind_tls(console: Console) -> None:
    app = make_app(console, Access("0.0.0.0", "secret-token"))
    for scheme, secure in (("http", False), ("https", True)):
        with TestClient(app, base_url=f"{scheme}://box", follow_redirects=False) as client:
            entered = client.post("/login", data={"token": "secret-token"})
            assert ("secure" in entered.headers["set-cookie"].lower()) == secure
