from __future__ import annotations

import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from cilf.console import window_view
from cilf.console.app import make_app
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store

from .conftest import (
    COWS,
    HENS,
    URL,
    get_clusters,
    post,
    put_model,
    put_window,
)


def test_each_verb_by_rest(client: TestClient) -> None:
    first = get_clusters(client)
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
        assert expected.items() <= get_clusters(client).items(), verb
        post(client, "undo")
        assert get_clusters(client) == first, verb
    post(client, "merge", clusters=[HENS, COWS])
    assert get_clusters(client) == {HENS: (None, "open", 20)}
    post(client, "name", clusters=[HENS], name="bird")
    post(client, "reopen", clusters=[HENS])
    assert get_clusters(client) == {HENS: (None, "open", 20)}


def test_a_conflict_says_what_changed(client: TestClient) -> None:
    post(client, "name", clusters=[COWS], name="cow", version=0, person="ann")
    told = post(client, "name", 409, clusters=[COWS], name="calf", version=0, person="bob")
    assert told["version"] == 1
    assert told["events"][0]["person"] == "ann"
    assert told["events"][0]["about"] == {"clusters": [COWS], "name": "cow"}
    assert get_clusters(client)[COWS][0] == "cow"


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
    assert get_clusters(client) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}


def test_the_view_by_rest(client: TestClient) -> None:
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
    again = {"if-none-match": picture.headers["etag"]}
    assert client.get("/api/windows/1/thumbs/3.png", headers=again).status_code == 304
    assert client.get("/api/windows/1/thumbs/4.png", headers=again).status_code == 200
    assert client.get("/api/windows/1/thumbs/50.png").status_code == 404


def test_people_view_while_others_change_things(console: Console) -> None:
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


def test_the_interface_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    paths = described["paths"]
    verbs = ("name", "into", "merge", "split", "reject", "skip", "move", "label", "undo", "update")
    for verb in verbs:
        assert f"/api/windows/{{window}}/{verb}" in paths
    assert all(path.startswith("/api/") for path in paths)
    assert json.dumps(described)


HEADERS = {"host": "127.0.0.1"}
N_WINDOWS = 3
EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def fuzz(operation: Any) -> None:
    """Send requests to one operation, right and wrong ones."""

    @EXAMPLES
    @given(case=operation.as_strategy())
    def no_request_breaks_the_server(case: Any) -> None:
        window = (case.path_parameters or {}).get("window")
        if isinstance(window, int) and window > 0:
            case.path_parameters["window"] = window % N_WINDOWS + 1  # most others are not there
        answer = case.call(headers=HEADERS)
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)

    no_request_breaks_the_server()


def test_no_request_breaks_the_server(tmp_path: Path) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    store = Store(tmp_path)
    put_model(store)
    console = Console(store, tmp_path / "model", roots=[tmp_path / "nothing"])
    for _ in range(N_WINDOWS):
        put_window(console)
    app = make_app(console, Access())
    described = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:
        fuzz(operation)
    store.close()
