"""Notifications: signed, sent again with patience, given up at last."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cilf.errors import BadConfig
from cilf.serving import notifications
from cilf.serving.notifications import Notifier, make_command, make_webhook
from cilf.serving.watch_state import WatchState, open_state

BODY = {"id": "w1", "window": 1}


class Receiver:
    """A web server that answers with the given statuses, one after another."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.requests = list(statuses), list[tuple[Any, bytes]]()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.requests.append((self.headers, body))
                self.send_response(owner.statuses.pop(0))
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def __enter__(self) -> Receiver:
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[WatchState]:
    with open_state(tmp_path / "state", 10) as made:
        yield made


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def post(state: WatchState, notifier: Notifier) -> None:
    state.end_window(1, notifier.address(BODY))


def test_a_webhook_gets_a_signed_body(state: WatchState) -> None:
    with Receiver(204) as receiver:
        notifier = Notifier({"webhook": make_webhook(receiver.url, "secret")}, print)
        post(state, notifier)
        assert notifier.deliver(state) is None
    ((headers, body),) = receiver.requests
    assert json.loads(body) == BODY
    expected = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    assert headers["X-Cilf-Signature"] == f"sha256={expected}"
    assert headers["X-Cilf-Id"] == "w1"
    assert state.messages() == []


def test_a_webhook_that_answers_500_is_tried_again_later_and_later(state: WatchState) -> None:
    said: list[str] = []
    clock = Clock()
    with Receiver(500, 503, 200) as receiver:
        notifier = Notifier({"webhook": make_webhook(receiver.url, "secret")}, said.append, clock)
        post(state, notifier)
        assert notifier.deliver(state) == 1.0
        assert notifier.deliver(state) == 1.0  # it is not due
        clock.now += 1.0
        assert notifier.deliver(state) == 2.0
        clock.now += 2.0
        assert notifier.deliver(state) is None
    assert len(receiver.requests) == 3
    assert len({body for _, body in receiver.requests}) == 1
    assert said == [
        "webhook: w1 did not arrive (it answers 500): it is sent again in 1 s.",
        "webhook: w1 did not arrive (it answers 503): it is sent again in 2 s.",
    ]


def test_nobody_listens_and_it_is_given_up_at_last(
    state: WatchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "MOST_TRIES", 3)
    said: list[str] = []
    clock = Clock()
    with Receiver() as receiver:
        url = receiver.url
    notifier = Notifier({"webhook": make_webhook(url, "secret")}, said.append, clock)
    post(state, notifier)
    while (wait := notifier.deliver(state)) is not None:
        clock.now += wait
    assert len(said) == 3
    assert "refused" in said[0]
    assert said[-1].endswith("it is given up after 3 tries.")
    assert state.messages() == []


def test_one_channel_does_not_hold_up_another(state: WatchState) -> None:
    got: list[Any] = []
    channels = {"bad": lambda body: "no", "good": lambda body: got.append(body) or ""}
    notifier = Notifier(channels, lambda line: None)
    post(state, notifier)
    notifier.deliver(state)
    assert got == [BODY]
    assert [message.channel for message in state.messages()] == ["bad"]


def test_a_command_gets_the_notification_on_standard_input(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    place = tmp_path / "a b; touch c"
    assert make_command(f"{sys.executable} -c \"{code}\" '{place}'")(BODY) == ""
    assert json.loads(place.read_text()) == BODY
    assert make_command(f"{sys.executable} -c 'raise SystemExit(3)'")(BODY) == "it ends with 3"
    assert "no-such-program" in make_command("no-such-program")(BODY)


@pytest.mark.parametrize(("url", "secret"), [("ftp://a", "s"), ("file:///etc/passwd", "s")])
def test_only_web_addresses_are_taken(url: str, secret: str) -> None:
    with pytest.raises(BadConfig, match="give a URL of http"):
        make_webhook(url, secret)


def test_a_webhook_without_a_secret_and_a_bad_command_are_refused() -> None:
    with pytest.raises(BadConfig, match="set CILF_WEBHOOK_SECRET"):
        make_webhook("http://a/", None)
    for command in ("", "a 'b"):
        with pytest.raises(BadConfig, match="--command is"):
            make_command(command)
