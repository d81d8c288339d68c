"""Notices: lines that a person should read once, about choices made for them.

They go to the logger ``cilf``, which prints them on standard error by default::

    logging.getLogger("cilf").setLevel(logging.ERROR)      # be quiet
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("cilf")

_said: set[str] = set()


def warn_once(text: str) -> None:
    """Log a line, unless it has been logged before."""
    if text not in _said:
        _said.add(text)
        LOGGER.warning(text)


def forget() -> None:
    """Let every line be logged once more."""
    _said.clear()
