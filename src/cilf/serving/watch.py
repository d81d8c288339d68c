"""Watch a stream that never stops: gather windows, detect in each, tell what is new."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cilf.errors import BadConfig, CilfError
from cilf.serving.destinations import Destination
from cilf.serving.live_model import LiveModel
from cilf.serving.notifications import Notifier, Send
from cilf.serving.sources import open_source
from cilf.serving.watch_state import WatchState, open_state

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """The seconds of a duration.

    >>> parse_duration("10m"), parse_duration("1.5h"), parse_duration("30")
    (600.0, 5400.0, 30.0)
    """
    read = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    seconds = float(read[1]) * UNITS[read[2] or "s"] if read else 0.0
    if seconds <= 0:
        raise BadConfig(f"--every is {text!r}: give a time like 30s, 10m, 2h or 1d.")
    return seconds


@dataclass(frozen=True)
class Pace:
    """How often a stream is looked at, and how large its windows are.

    Attributes:
        every: seconds between two looks.
        at_least: the instances that a window has at least.
        queue: the instances that may wait at most.
        once: whether one look is enough.
    """

    every: float = 600.0
    at_least: int = 200
    queue: int = 10_000
    once: bool = False

    def check(self) -> None:
        if self.at_least < 1:
            raise BadConfig(f"--at-least is {self.at_least}: give 1 or more.")
        if self.queue < self.at_least:
            raise BadConfig(
                f"--queue is {self.queue}, less than --at-least ({self.at_least}): a window would "
                "never be full. Give more."
            )


def watch(
    model: Path,
    source: str,
    destination: Destination,
    state: Path,
    *,
    pace: Pace,
    channels: Mapping[str, Send],
    say: Callable[[str], None],
    descriptor: int = 0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Watch a source until it ends, or until somebody interrupts.

    Args:
        model: the model folder, whose current version detects.
        source: a folder, a pattern, a URL of fsspec, or "-" for lines of JSON.
        destination: where windows are detected.
        state: the folder that keeps what was seen and what waits.
        pace: how often it is looked at, and how large windows are.
        channels: where notifications go, by name.
        say: a function that gets one line about what happens, or about what is wrong.
        descriptor: the file descriptor of the lines.
        sleep: waits some seconds.
    """
    pace.check()
    opened = open_source(source, say, descriptor)
    live = LiveModel(model)
    notifier = Notifier(channels, say)
    with open_state(state, pace.queue) as kept:
        while True:
            started = time.monotonic()
            due = notifier.deliver(kept)
            was_full = opened.gather(kept, live.loaded, pace.every if due is None else due)
            live.refresh()
            n_detected = _detect_windows(kept, live, destination, pace.at_least, notifier, say)
            due = notifier.deliver(kept)
            if was_full and n_detected:
                continue  # there is room again
            if pace.once or opened.is_ended:
                break
            left = max(0.0, started + pace.every - time.monotonic())
            sleep(left if due is None else min(left, due))
        if kept.n_waiting:
            say(f"{kept.n_waiting} instances wait for a window of at least {pace.at_least}.")


def _detect_windows(
    state: WatchState,
    live: LiveModel,
    destination: Destination,
    at_least: int,
    notifier: Notifier,
    say: Callable[[str], None],
) -> int:
    """Detect in each window that there is; returns how many there were."""
    n_detected = 0
    while (number := state.start_window(at_least)) is not None:
        try:
            found = destination.detect(number, state.id, state.read_window(number), live.loaded)
        except CilfError as error:
            say(f"window {number} waits: {error}")
            break
        body = {"id": f"{state.id}-{number:04d}", "window": number, **found}
        state.end_window(number, notifier.address(body) if found["n_novel"] else [])
        say(
            f"{found['findings']}: of {found['n_instances']} instances "
            f"{found['n_novel_instances']} are in {found['n_novel']} novel clusters"
        )
        n_detected += 1
    return n_detected
