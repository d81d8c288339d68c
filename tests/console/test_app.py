from __future__ import annotations

import io
import json
import random
import threading
import zipfile
from collections import Counter
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from cilf.console import uploads, window_view
from cilf.console.app import make_app
from cilf.console.gallery import encode_png
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store

from .conftest import COWS, HENS, URL, put_window


def post(client: TestClient, verb: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/api/windows/1/{verb}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def clusters(client: TestClient) -> dict[int, tuple[str | None, str, int]]:
    found = client.get("/api/windows/1/clusters").json()["clusters"]
    return {g["cluster"]: (g["name"], g["status"], g["size"]) for g in found}


def test_each_verb_by_rest(client: TestClient) -> None:
    first = clusters(client)
    stories: list[tuple[str, dict[str, Any], Any]] = [
        ("name", {"clusters": [COWS], "name": "cow"}, {COWS: ("cow", "open", 12)}),
        ("into", {"clusters": [COWS], "name": "dog"}, {COWS: ("dog", "open", 12)}),
        ("reject", {"clusters": [HENS]}, {HENS: (None, "rejected", 8)}),
        ("skip", {"clusters": [HENS]}, {HENS: (None, "skipped", 8)}),
        ("split", {"cluster": COWS, "rows": [30, 31]}, {COWS: (None, "open", 10)}),
        ("move", {"rows": [30, 42], "to": "new"}, {COWS: (None, "open", 11)}),
        ("move", {"rows": [30], "to": HENS}, {HENS: (None, "open", 9)}),
        ("move", {"rows": [30], "to": "known"}, {COWS: (None, "open", 11)}),
        ("label", {"rows": [0, 42], "name": "hen"}, {HENS: (None, "open", 7)}),
    ]
    for verb, body, expected in stories:
        post(client, verb, **body)
        assert expected.items() <= clusters(client).items(), verb
        post(client, "undo")
        assert clusters(client) == first, verb
    post(client, "merge", clusters=[HENS, COWS])
    assert clusters(client) == {HENS: (None, "open", 20)}
    post(client, "name", clusters=[HENS], name="bird")
    post(client, "reopen", clusters=[HENS])
    assert clusters(client) == {HENS: (None, "open", 20)}


def test_a_conflict_says_what_changed(client: TestClient) -> None:
    post(client, "name", clusters=[COWS], name="cow", version=0, person="ann")
    told = post(client, "name", 409, clusters=[COWS], name="calf", version=0, person="bob")
    assert told["version"] == 1
    assert told["events"][0]["person"] == "ann"
    assert told["events"][0]["about"] == {"clusters": [COWS], "name": "cow"}
    assert clusters(client)[COWS][0] == "cow"


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("name", {"clusters": [9], "name": "cow"}, 400),
        ("name", {"clusters": [COWS], "name": "CAT"}, 400),
        ("name", {"clusters": [], "name": "cow"}, 422),
        ("name", {"clusters": [COWS], "name": "a\x00b"}, 422),
        ("name", {"clusters": [COWS], "name": "cow", "extra": 1}, 422),
        ("into", {"clusters": [COWS], "name": "cow"}, 400),
        ("move", {"rows": [9999], "to": COWS}, 400),
        ("move", {"rows": [2**40], "to": COWS}, 422),
        ("split", {"cluster": COWS, "rows": [0]}, 400),
        ("undo", {}, 400),
        ("update", {}, 400),
    ],
)
def test_what_cannot_be_done(client: TestClient, verb: str, body: Any, status: int) -> None:
    post(client, verb, status, **body)
    assert clusters(client) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}


def test_looking(client: TestClient) -> None:
    shown = client.get(f"/api/windows/1/clusters/{COWS}").json()["exemplars"]
    assert set(shown) == {"medoid", "nearest", "farthest", "random"}
    points = client.get("/api/windows/1/map").json()
    assert len(points["x"]) == len(points["cluster"]) == 50
    assert 0 <= min(points["x"]) <= max(points["x"]) <= 1000
    page = client.get("/api/windows/1/instances?cluster=0&label=cat&most=7").json()
    assert (page["total"], len(page["instances"])) == (20, 7)
    assert all(one["identity"].startswith("cat") for one in page["instances"])
    one = client.get("/api/windows/1/instances/30").json()
    assert (one["identity"], one["cluster"], one["nearest"]) == ("cow-30", COWS, "dog")
    assert client.get("/api/windows/1/instances/50").status_code == 404
    queries = client.get("/api/windows/1/queries?strategy=uncertain").json()
    assert len(queries["instances"]) == queries["left"] == 10
    client.put("/api/windows/1/budget", json={"budget": 3})
    assert client.get("/api/windows/1/queries").json()["left"] == 3


def test_thumbnails(client: TestClient) -> None:
    picture = client.get("/api/windows/1/thumbs/3.png")
    assert picture.headers["content-type"] == "image/png"
    assert "immutable" in picture.headers["cache-control"]
    assert client.get("/api/windows/1/thumbs/50.png").status_code == 404


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


def test_pages(client: TestClient) -> None:
    post(client, "name", clusters=[COWS], name="<b>cow</b>")
    for path in ("/", "/windows/1", "/classes", "/stream", "/login"):
        page = client.get(path)
        assert page.status_code == 200, path
        assert "<b>cow" not in page.text
    assert "&lt;b&gt;cow" in client.get("/windows/1").text
    assert client.get("/windows/7").status_code == 404
    assert client.get("/static/../app.py").status_code == 404
    assert "http" not in client.get("/static/console.js").text
    for section in ("clusters", "known", "queries", "history", "update", "members?cluster=1"):
        assert client.get(f"/windows/1/section/{section}").status_code == 200, section


def test_the_classes_page_says_where_versions_came_from(
    client: TestClient, console: Console
) -> None:
    update = {"event": "update", "version": 2, "before": 1, "time": "2026-01-02T00:00:00+00:00"}
    update |= {"n_labels": 1, "data": "monday", "renamed": {"dog": "hound"}, "new_classes": []}
    model = console.model()
    console.store.put_fact("model", {**model, "events": [*model["events"], update]})
    page = client.get("/classes").text
    assert "fit from zoo" in page
    assert "update, 1 label from monday; dog renamed to hound" in page
    assert "since version 1, 30 labels" in page


def test_a_window_can_have_more_clusters_than_were_found(client: TestClient) -> None:
    post(client, "label", rows=[0], name="cat")
    post(client, "split", cluster=COWS, rows=[30])
    page = client.get("/section/windows").text
    assert "<td>1 of 4</td>" in page


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


def test_people_look_while_others_change_things(console: Console) -> None:
    """Clusters come and go under the readers' eyes: no answer breaks, the log is shown."""
    app, statuses = make_app(console, Access()), Counter[int]()

    def person(seed: int) -> None:
        rng = random.Random(seed)
        with TestClient(app, base_url=URL, raise_server_exceptions=False) as client:
            for _ in range(30):
                action = rng.choice(["merge", "undo", "page", "page", "cluster"])
                if action == "page":
                    answer = client.get("/windows/1")
                elif action == "cluster":
                    answer = client.get(f"/api/windows/1/clusters/{HENS}")
                else:
                    body = {"clusters": [COWS, HENS]} if action == "merge" else {}
                    answer = client.post(f"/api/windows/1/{action}", json=body)
                statuses[answer.status_code] += 1

    people = [threading.Thread(target=person, args=(seed,)) for seed in range(4)]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join()
    assert set(statuses) <= {200, 400, 404, 409}, statuses
    assert statuses[200] > 40
    again = Console(console.store, console.model_path)
    assert window_view.list_clusters(again, 1) == window_view.list_clusters(console, 1)


# ----------------------------------------------------------------- who may come


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
    assert clusters(client)[COWS][0] is None


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
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
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


# ----------------------------------------------------------------- uploads


def picture(side: int = 8) -> bytes:
    return encode_png(np.zeros((side, side), np.uint8))


def packed(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return content.getvalue()


def upload(client: TestClient, *files: tuple[str, bytes]) -> Any:
    return client.post("/api/windows/upload", files=[("files", file) for file in files])


def kept(store: Store) -> set[str]:
    return {path.name for path in (store.folder / "uploads").rglob("*") if path.is_file()}


def test_images_are_kept_under_safe_names(client: TestClient, store: Store) -> None:
    answer = upload(
        client, ("../../a.png", picture()), ("C:\\b\\a.png", picture()), (".hidden.png", picture())
    )
    assert answer.status_code == 201, answer.text
    assert kept(store) == {"a.png", "a-2.png", "hidden.png"}
    assert answer.json()["status"] == "queued"


def test_long_and_odd_names(client: TestClient, store: Store) -> None:
    for name in ("鳥" * 100 + ".png", "a" * 1000 + ".png", "x\x00\x1by.png", "\u202e\u200b.z.png"):
        file = (name, picture())
        answer = client.post("/api/windows/upload", files=[("files", file)])
        assert answer.status_code == 201, answer.text
        assert answer.json()["name"].isprintable()
    assert all(len(name.encode()) < 255 for name in kept(store))


def test_many_files_of_one_name(client: TestClient, store: Store) -> None:
    packed_files = packed({f"{i}/a.png": picture() for i in range(300)})
    assert upload(client, ("some.zip", packed_files)).status_code == 201
    assert kept(store) == {"a.png"} | {f"a-{i}.png" for i in range(2, 301)}


def test_a_link_in_a_zip_is_no_image(client: TestClient, store: Store) -> None:
    link = zipfile.ZipInfo("evil.png")
    link.external_attr = 0o120777 << 16
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(link, "/etc/passwd")
    assert upload(client, ("link.zip", content.getvalue())).status_code == 400
    assert kept(store) == set()


def test_images_in_a_parquet_table(client: TestClient, store: Store) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def table(rows: list[dict[str, Any]]) -> bytes:
        content = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist([{"image": row} for row in rows]), content)
        return content.getvalue()

    good = table([{"bytes": picture(), "path": "a.png"}])
    assert upload(client, ("rows.parquet", good)).status_code == 201
    evil = table([{"bytes": picture(), "path": "a.png"}, {"bytes": None, "path": "/etc/x.png"}])
    assert upload(client, ("evil.parquet", evil)).status_code == 400
    assert kept(store) == {"rows.parquet"}


def test_a_zip_gives_its_images_only(client: TestClient, store: Store) -> None:
    files = {
        "../../../tmp/evil.png": picture(),
        "/etc/abs.png": picture(),
        "deep/in/side.PNG": picture(),
        "__MACOSX/._a.png": b"x",
        "notes.txt": b"hello",
        "run.sh": b"#!/bin/sh",
    }
    answer = upload(client, ("some.zip", packed(files)))
    assert answer.status_code == 201, answer.text
    assert kept(store) == {"evil.png", "abs.png", "side.PNG"}


def bomb() -> bytes:
    return packed({"a.png": b"\0" * (30 << 20)})


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("evil.py", b"print()", 400),
        ("evil.pkl", b"\x80\x04.", 400),
        ("evil.svg", b"<svg onload='alert(1)'/>", 400),
        ("no-picture.png", b"GIF89a-not", 400),
        ("text.png", b"#!/bin/sh", 400),
        (".png", picture(), 400),
        ("broken.zip", b"PK\x03\x04", 400),
        ("empty.zip", packed({}), 400),
        ("inside.zip", packed({"a.png": b"not a picture"}), 400),
        ("bomb.zip", bomb(), 413),
        ("large.png", encode_png(np.zeros((2100, 2100), np.uint8)), 413),
        ("paths.csv", b"image\n/etc/secret.png\n", 400),
        ("paths.jsonl", b'{"image": "../secret.png"}\n', 400),
        ("bad.csv", b"\xff\xfe\x00", 400),
        ("bad.jsonl", b"{", 400),
        ("bad.parquet", b"PAR1", 400),
        ("bad.npz", b"PK", 400),
        ("bomb.npz", bomb(), 413),
    ],
)
def test_files_that_are_refused_leave_nothing(
    client: TestClient,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes,
    status: int,
) -> None:
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 20 << 20)
    monkeypatch.setattr(uploads, "MAX_PIXELS", 4_000_000)
    answer = upload(client, (name, content))
    assert answer.status_code == status, answer.text
    assert kept(store) == set()
    assert len(client.get("/api/windows").json()) == 1


def test_a_zip_that_lies_about_its_sizes(client: TestClient, store: Store) -> None:
    content = bytearray(packed({"a.png": b"\0" * 100_000}))
    real = (100_000).to_bytes(4, "little")
    lie = (10).to_bytes(4, "little")
    assert upload(client, ("lie.zip", bytes(content).replace(real, lie))).status_code in (400, 413)
    assert kept(store) == set()


def test_tables_are_kept(client: TestClient, store: Store) -> None:
    assert upload(client, ("rows.csv", b"x,y\n1,2\n3,4\n")).status_code == 201
    assert kept(store) == {"rows.csv"}
    two = upload(client, ("rows.csv", b"x,y\n1,2\n"), ("a.png", picture()))
    assert two.status_code == 400


def test_a_store_that_is_gone_is_one_line(client: TestClient, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE events")
    answer = client.post("/api/windows/1/name", json={"clusters": [COWS], "name": "cow"})
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["detail"]


def test_bodies_have_a_limit(client: TestClient) -> None:
    answer = client.post(
        "/api/windows/1/name", content=b"x", headers={"content-length": str(1 << 40)}
    )
    assert answer.status_code == 413


def test_the_interface_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    paths = described["paths"]
    verbs = ("name", "into", "merge", "split", "reject", "skip", "move", "label", "undo", "update")
    for verb in verbs:
        assert f"/api/windows/{{window}}/{verb}" in paths
    assert all(path.startswith("/api/") for path in paths)
    assert json.dumps(described)
