from __future__ import annotations

import subprocess
import sys

import pytest
from fastapi.testclient import TestClient

from cilf.console.store import Store
from cilf.console.store_problems import OTHER_SCHEMA

from .conftest import (
    COWS,
)


def test_a_store_that_is_gone_is_one_line(client: TestClient, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE events")
    answer = client.post("/api/windows/1/name", json={"clusters": [COWS], "name": "cow"})
    assert answer.status_code == 503
    assert answer.json()["detail"] == OTHER_SCHEMA


@pytest.mark.parametrize(
    "body",
    [
        b'{"clusters": NaN, "name": "cow"}',
        b'{"clusters": [1e999], "name": "cow"}',
        b'{"clusters": [1], "name": "\\ud800"}',
        b'{"clusters": [1], "name": "cow", "\\ud800": 1}',
        b'{"clusters": [-Infinity], "name": 7}',
    ],
)
def test_what_json_cannot_hold_is_explained(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/api/windows/1/name", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert all(one["loc"] and one["msg"] for one in answer.json()["detail"])


def test_answers_repeat_little_of_a_request(client: TestClient) -> None:
    short = client.post("/api/windows/1/name", json={"clusters": "many", "name": "cow"})
    assert short.json()["detail"][0]["input"] == "'many'"
    long = client.post("/api/windows/1/name", json={"clusters": "many" * 10_000, "name": "cow"})
    assert long.status_code == 422
    assert len(long.content) < 1000


def test_the_server_loads_no_learner() -> None:
    """The worker learns; the server starts at once and stays small."""
    code = "import sys, cilf.console.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
