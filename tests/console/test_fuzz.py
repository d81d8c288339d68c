"""The REST interface fuzzed from its own description: whatever comes, the server does not break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from cilf.console.app import make_app
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store

from .conftest import put_model, put_window

schemathesis = pytest.importorskip("schemathesis")

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
