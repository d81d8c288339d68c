"""Lines that a person should read once: what was chosen, or left out, on their behalf.

They go to the logger ``cilf``, which shows them on standard error unless told otherwise::

    logging.getLogger("cilf").setLevel(logging.ERROR)      # be quiet
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("cilf")

_said: set[str] = set()


def notice(text: str) -> None:
    """Say a line, unless it has been said before."""
    if text not in _said:
        _said.add(text)
        LOGGER.warning(text)


def forget() -> None:
    """Say lines again that have been said before."""
    _said.clear()
