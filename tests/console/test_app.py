from __future__ import annotations

from fastapi.testclient import TestClient

from cilf.console.store import Store

from .conftest import (
    COWS,
)


def test_a_store_that_is_gone_is_one_line(client: TestClient, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE events")
    answer = client.post("/api/windows/1/name", json={"clusters": [COWS], "name": "cow"})
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["detail"]
