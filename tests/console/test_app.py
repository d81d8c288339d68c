from __future__ import annotations

import subprocess
import sys

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


def test_the_server_loads_no_learner() -> None:
    """The worker learns; the server starts at once and stays small."""
    code = "import sys, cilf.console.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
