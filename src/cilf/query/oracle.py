"""The simulated person who answers queries from the true labels."""

from __future__ import annotations

from cilf.core import Window
from cilf.core.types import Array, Ints


class Oracle:
    """Knows the true labels of one window and gives only those that are queried."""

    def __init__(self, window: Window) -> None:
        self._truth = window.y

    def answer(self, rows: Ints) -> Array:
        """The true labels of these rows."""
        return self._truth[rows]
