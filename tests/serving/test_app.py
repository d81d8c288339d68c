"""The routes of the prediction server."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from cilf import workflow
from cilf.console.guard import Access
from cilf.core.types import Array
from cilf.learners import IForest
from cilf.serving import live_model
from cilf.serving.app import make_app
from cilf.serving.live_model import LiveModel

from ..console.prometheus_text import parse
from ..points import write_points
from .conftest import URL


def read_points(path: Path) -> list[list[float]]:
    columns = {"delimiter": ",", "skip_header": 1, "usecols": (1, 2)}
    points: list[list[float]] = np.genfromtxt(path, **columns).tolist()
    return points


def test_predict_says_what_the_command_says(client: TestClient, model: Path) -> None:
    table = write_points(model.parent / "new.csv", {"left": 5, "right": 5, "up": 5}, 1)
    said = workflow.predict(model, table)
    answer = client.post("/predict", json={"instances": read_points(table)})
    assert answer.status_code == 200, answer.text
    predictions = answer.json()["predictions"]
    assert [each["label"] for each in predictions] == said.labels.tolist()
    np.testing.assert_allclose([each["novelty_p"] for each in predictions], said.novelty_p)
    one = client.post("/predict", json={"instance": [-6, 0]}).json()
    assert (one["model_version"], one["predictions"][0]["label"]) == (1, "left")


def test_detect_finds_the_novel_classes_of_a_window(client: TestClient, model: Path) -> None:
    sizes = {"left": 20, "right": 20, "up": 30, "down": 30}
    points = read_points(write_points(model.parent / "new.csv", sizes, 1))
    ids = [f"p{i}" for i in range(100)]
    said = client.post("/detect", json={"instances": points, "ids": ids}).json()
    assert said["n_novel"] == 2
    found = {each["identity"]: each for each in said["instances"]}
    assert (found["p0"]["cluster"], found["p0"]["label"]) == (None, "left")
    clusters = {found[f"p{i}"]["cluster"] for i in range(45, 65)}
    assert len(clusters) == 1
    assert clusters <= {1, 2}
    assert found["p50"]["label"] is None


BODIES: list[tuple[Any, str]] = [
    ({}, "JSON object with 'instance' or 'instances'"),
    ({"instance": [1, 2], "instances": [[1, 2]]}, "JSON object with 'instance' or 'instances'"),
    ([[1, 2]], "JSON object with 'instance' or 'instances'"),
    ({"instances": []}, "with at least one"),
    ({"instances": "ab"}, "has to be a list"),
    ({"instances": [[1, 2], [3]]}, "X"),
    ({"instances": [[1, 2, 3]]}, "X"),
    ({"instances": [[1, None]]}, "X"),
    ({"instances": ["a text"]}, "X holds texts"),
    ({"instances": [[1, 2]], "ids": ["a", "b"]}, "ids has to be a list"),
]


@pytest.mark.parametrize("path", ["/predict", "/detect"])
@pytest.mark.parametrize(("body", "said"), BODIES)
def test_a_bad_body_is_one_line(client: TestClient, path: str, body: Any, said: str) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_no_json_and_images_for_points_are_refused(client: TestClient) -> None:
    answer = client.post("/predict", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"][:25]) == (400, "the body has to be JSON, ")
    answer = client.post("/predict", files=[("files", ("a.png", encode(np.zeros((4, 4)))))])
    assert "the model takes no images" in answer.json()["detail"]


def encode(pixels: Array) -> bytes:
    written = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(written, "PNG")
    return written.getvalue()


def test_images_come_as_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    dark, light = rng.integers(0, 60, (30, 6, 5)), rng.integers(180, 256, (30, 6, 5))
    images = np.concatenate([dark, light]).astype(np.uint8)
    IForest(features="raw").fit(images, ["dark"] * 30 + ["light"] * 30).save(tmp_path / "m")
    with TestClient(make_app(LiveModel(tmp_path / "m"), Access()), base_url=URL) as client:
        files = [("files", (f"{i}.png", encode(images[i]))) for i in (0, 59)]
        said = client.post("/predict", files=files).json()
        assert said["model_version"] is None
        assert [(p["identity"], p["label"]) for p in said["predictions"]] == [
            ("0.png", "dark"), ("59.png", "light"),
        ]  # fmt: skip
        broken = client.post("/detect", files=[("files", ("a.png", b"no image"))])
        assert broken.status_code == 400
        assert "a.png is not a readable image" in broken.json()["detail"]
        assert client.post("/predict", json={"instances": [[1]]}).status_code == 400


def test_a_new_version_is_used_without_dropping_a_request(
    client: TestClient, live: LiveModel, model: Path
) -> None:
    def ask(_: int) -> tuple[int, int, str]:
        answer = client.post("/predict", json={"instance": [-6, 0]})
        said = answer.json()
        return answer.status_code, said["model_version"], said["predictions"][0]["label"]

    with live.refreshing(0.01), ThreadPoolExecutor(4) as pool:
        early = pool.map(ask, range(20))
        workflow.rename(model, "left", "west")
        answers = set(early)
        while (last := ask(0))[1] == 1:
            answers.add(last)
        answers |= set(pool.map(ask, range(20)))
    assert answers == {(200, 1, "left"), (200, 2, "west")}
    assert client.get("/readyz").json() == {"status": "ready", "model_version": 2}


def test_a_damaged_version_leaves_the_former_one_in_use(
    client: TestClient, live: LiveModel, model: Path
) -> None:
    workflow.rename(model, "left", "west")
    next((model / "versions" / "0002").glob("*.safetensors")).write_bytes(b"damaged")
    assert not live.refresh()
    assert not live.refresh()  # it is not tried again
    assert client.post("/predict", json={"instance": [-6, 0]}).json()["model_version"] == 1
    assert parse(client.get("/metrics").text)["cilf_failed_reloads_total"] == {(): 1.0}


def test_too_many_requests_are_told_to_come_back(
    client: TestClient, live: LiveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_model, "MOST_WAITING", 0)
    answer = client.post("/predict", json={"instance": [0, 0]})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert live.n_waiting == 0


def test_metrics_say_what_was_seen(client: TestClient, model: Path) -> None:
    sizes = {"left": 20, "right": 20, "up": 30, "down": 30}
    points = read_points(write_points(model.parent / "new.csv", sizes, 1))
    client.post("/detect", json={"instances": points})
    client.post("/predict", json={"instances": [[-6, 0]]})
    client.post("/predict", json={})
    client.get("/nowhere")
    found = parse(client.get("/metrics").text)
    requests = found["cilf_requests_total"]
    assert requests[("method", "POST"), ("path", "/predict"), ("status", "200")] == 1
    assert requests[("method", "POST"), ("path", "/predict"), ("status", "400")] == 1
    assert requests[("method", "GET"), ("path", "other"), ("status", "404")] == 1
    assert found["cilf_request_seconds_count"][(("path", "/predict"),)] == 2
    buckets = found["cilf_request_seconds_bucket"]
    assert buckets[("le", "+Inf"), ("path", "/predict")] == 2
    for name, value in {
        "cilf_windows_total": 1, "cilf_instances_total": 100, "cilf_novel_share": 0.6,
        "cilf_novel_classes": 2, "cilf_model_version": 1, "cilf_queue_length": 0,
    }.items():  # fmt: skip
        assert found[name] == {(): pytest.approx(value, abs=0.04)}, name
    assert 0 <= found["cilf_class_drift"][(("class", "left"),)] < 1


def test_drift_is_seen(client: TestClient) -> None:
    shifted = [[-6 + 0.9 + 0.1 * i % 0.3, 0.1 * i % 0.4] for i in range(50)]
    client.post("/predict", json={"instances": shifted})
    near = [[6 + 0.3 * (i % 3 - 1), 0.3 * (i % 5 - 2)] for i in range(50)]
    client.post("/predict", json={"instances": near})
    drift = parse(client.get("/metrics").text)["cilf_class_drift"]
    assert drift[(("class", "left"),)] > 2 * drift[(("class", "right"),)]


def test_probes_are_open_and_everything_else_needs_the_token(live: LiveModel) -> None:
    with TestClient(make_app(live, Access("0.0.0.0", "long-enough")), base_url=URL) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").status_code == 200
        body = {"instance": [0, 0]}
        for answer in (client.get("/metrics"), client.post("/predict", json=body)):
            assert answer.status_code == 401
        token = {"authorization": "Bearer long-enough"}
        assert client.get("/metrics", headers=token).status_code == 200
        assert client.post("/predict", json=body, headers=token).status_code == 200


def test_the_drift_of_a_former_version_is_forgotten(
    client: TestClient, live: LiveModel, model: Path
) -> None:
    client.post("/predict", json={"instances": [[-6 + 0.1 * i, 0] for i in range(10)]})
    workflow.rename(model, "left", "west")
    assert live.refresh()
    client.post("/predict", json={"instances": [[-6 + 0.1 * i, 0] for i in range(10)]})
    names = {labels[0][1] for labels in parse(client.get("/metrics").text)["cilf_class_drift"]}
    assert names == {"west"}
    assert re.search("cilf_model_version 2", client.get("/metrics").text)
