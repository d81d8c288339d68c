"""Notifications that something new appeared: to a URL, to a command, to standard output."""

from __future__ import annotations

import hashlib
import hmac
import json
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cilf.errors import BadConfig
from cilf.serving.watch_state import Message, WatchState

SECRET = "CILF_WEBHOOK_SECRET"  # nosec B105  # a name
SIGNATURE, IDENTITY = "X-Cilf-Signature", "X-Cilf-Id"
TIMEOUT = 20.0  # seconds of a request
COMMAND_TIMEOUT = 600.0
FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0  # seconds before it is sent again, which double
MOST_TRIES = 12

Send = Callable[[Mapping[str, Any]], str]  # says what is wrong; "" if it arrived


def sign(body: bytes, secret: str) -> str:
    """The signature of a body, as its header says it.

    >>> sign(b"{}", "secret")[:23]
    'sha256=77325902caca812d'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def make_webhook(url: str, secret: str | None) -> Send:
    """Send to a URL, with a signature of the body."""
    if not url.startswith(("http://", "https://")):
        raise BadConfig(f"--webhook is {url!r}: give a URL of http or https.")
    if not secret:
        raise BadConfig(f"--webhook signs what it sends: set {SECRET} to a secret.")

    def send(body: Mapping[str, Any]) -> str:
        content = json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            IDENTITY: str(body["id"]),
            SIGNATURE: sign(content, secret),
        }
        request = urllib.request.Request(url, content, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):  # nosec B310  # http(s)
                return ""
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answers {error.code}"
        except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
            return str(getattr(error, "reason", error))

    return send


def make_command(command: str) -> Send:
    """Run a command, which gets the notification on standard input. No shell reads it."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise BadConfig(f"--command is {command!r}, which cannot be read ({error}).") from error
    if not arguments:
        raise BadConfig("--command is empty: give a program with its arguments.")

    def send(body: Mapping[str, Any]) -> str:
        try:
            done = subprocess.run(
                arguments, input=json.dumps(body), text=True, check=False, timeout=COMMAND_TIMEOUT,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return f"it ends with {done.returncode}" if done.returncode else ""

    return send


class Notifier:
    """The channels of a watched stream. What does not arrive is sent again later."""

    def __init__(
        self,
        channels: Mapping[str, Send],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.channels, self.say, self._clock = channels, say, clock

    def address(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """The notification once for each channel."""
        return [(channel, body) for channel in self.channels]

    def deliver(self, state: WatchState) -> float | None:
        """Send what is due; returns the seconds until more is due, None if nothing is left."""
        waits = [self._deliver(message, state) for message in state.messages()]
        return min((wait for wait in waits if wait is not None), default=None)

    def _deliver(self, message: Message, state: WatchState) -> float | None:
        wait = message.due - self._clock()
        if wait > 0:
            return wait
        if message.channel not in self.channels:  # of an earlier command
            state.remove_message(message)
            return None
        problem = self.channels[message.channel](message.body)
        if not problem:
            state.remove_message(message)
            return None
        about = f"{message.channel}: {message.body['id']} did not arrive ({problem})"
        if message.tries + 1 >= MOST_TRIES:
            self.say(f"{about}: it is given up after {MOST_TRIES} tries.")
            state.remove_message(message)
            return None
        wait = min(FIRST_WAIT * 2.0**message.tries, LONGEST_WAIT)
        self.say(f"{about}: it is sent again in {wait:g} s.")
        state.postpone_message(message, self._clock() + wait)
        return wait
