"""What the server refuses, and what it keeps when it is killed."""

from __future__ import annotations

import random
import signal
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from cilf.console import window_view
from cilf.console.database import FILE
from cilf.console.server import readable_roots, serve
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.errors import BadConfig

from .conftest import (
    put_model,
    put_window,
)
from .servers import Server, serving


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "box.example", "127.0.0.1.example"])
def test_any_other_address_demands_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadConfig, match="lets other machines in: demand a token"):
        serve(tmp_path, host=host)


@pytest.mark.parametrize("token", ["", "short", "two words of it"])
def test_tokens_that_are_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(BadConfig, match="at least 8 characters without blanks"):
        serve(tmp_path, host="0.0.0.0", token=token)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadConfig, match="cannot listen on"):
            serve(tmp_path, port=taken.getsockname()[1])


def test_with_a_token_only_named_folders_may_be_read(tmp_path: Path) -> None:
    assert readable_roots(None, ()) is None
    assert (
        readable_roots(None, [tmp_path]) == readable_roots("a-long-token", [tmp_path]) == [tmp_path]
    )
    assert readable_roots("a-long-token", ()) == []


ROUNDS = 5


def label_until_killed(server: Server, window: int, rng: random.Random) -> list[tuple[int, str]]:
    """Names that the server has acknowledged, until it is killed at a random moment."""
    acknowledged: list[tuple[int, str]] = []
    killer = threading.Timer(rng.uniform(0.0, 0.03), server.kill)
    last = rng.randrange(3, 25)
    with httpx.Client(base_url=server.url, timeout=120) as client:
        try:
            while True:
                row, name = rng.randrange(50), f"name {rng.randrange(1000)}"
                body = {"rows": [row], "name": name}
                answer = client.post(f"/api/windows/{window}/label", json=body)
                assert answer.status_code in (200, 400), answer.text  # 400: it is called that
                acknowledged += [(row, name)] if answer.status_code == 200 else []
                if len(acknowledged) >= last and killer.ident is None:
                    killer.start()
        except httpx.TransportError:
            pass
    killer.join()
    return acknowledged


def test_a_kill_loses_no_label(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put_model(store)
    window = put_window(Console(store, tmp_path / "model"))
    store.close()
    rng = random.Random(0)
    expected: dict[int, str] = {}
    n_acknowledged = 0
    for _ in range(ROUNDS):
        with serving(tmp_path) as server:
            for row, name in label_until_killed(server, window, rng):
                expected[row] = name
                n_acknowledged += 1
        store = Store(tmp_path)
        console = Console(store, tmp_path / "model")
        kept = {
            row: one.label
            for row, one in enumerate(window_view.list_labels(console, window))
            if one.label
        }
        # The last request may have been written and killed before it was acknowledged.
        lost = {row for row, name in expected.items() if kept.get(row) != name}
        beyond = store.last_seq(window) - n_acknowledged
        assert 0 <= beyond <= 1
        assert len(lost) <= beyond
        n_acknowledged, expected = store.last_seq(window), kept
        store.close()
    assert n_acknowledged > ROUNDS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_ordinary_end_leaves_everything_in_one_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    store = Store(tmp_path)
    put_model(store)
    window = put_window(Console(store, tmp_path / "model"))
    store.close()
    with serving(tmp_path) as server:
        body = {"rows": [30], "name": "cow"}
        answer = httpx.post(f"{server.url}/api/windows/{window}/label", json=body, timeout=120)
        assert answer.status_code == 200
        assert server.stop(number) in (0, 130)
    assert not (tmp_path / f"{FILE}-wal").exists()
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT verb FROM events WHERE stream = 1").fetchall() == [
            ("label",)
        ]


def test_one_console_for_each_store(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        second = subprocess.run(
            [*server.process.args[:6], "--port", "0"],  # type: ignore[index,union-attr,misc]
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert second.returncode == 2
        assert "another console uses" in second.stderr
        assert httpx.get(server.url + "/api/windows").json() == []
        assert server.stop() in (0, 130, -2)
