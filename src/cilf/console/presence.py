"""Who is looking at which window. It is kept in memory only, by each server for itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

EXPIRES = 12.0  # seconds after the last sign of a page
MOST = 1000  # pages


@dataclass(frozen=True)
class Viewer:
    """A page that shows a window."""

    person: str
    window: int
    cluster: int | None  # the cluster in focus, from 1
    time: float


class Presence:
    """The pages that have shown a sign of life lately.

    >>> presence = Presence()
    >>> presence.look("a", "Ann", 1, 2)
    []
    >>> [(one.person, one.cluster) for one in presence.look("b", "Bob", 1, None)]
    [('Ann', 2)]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._viewers: dict[str, Viewer] = {}
        self._lock = threading.Lock()

    def look(self, page: str, person: str, window: int, cluster: int | None) -> list[Viewer]:
        """Note what a page shows. Returns the pages of other people that show the same window."""
        now = self._clock()
        with self._lock:
            self._viewers.pop(page, None)
            self._viewers[page] = Viewer(person, window, cluster, now)
            alive = [(key, one) for key, one in self._viewers.items() if now - one.time < EXPIRES]
            self._viewers = dict(alive[-MOST:])
        others = [one for key, one in alive if key != page and one.window == window]
        return [one for one in others if not person or one.person != person]
