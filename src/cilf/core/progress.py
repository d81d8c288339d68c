"""Progress of long work, reported to a listener if there is one.

>>> with listen(lambda stage, done, total: print(stage, done, "of", total)):
...     report("fit", 1, 20)
fit 1 of 20
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

FEATURES = "features"  # the stage in which a frozen network computes vectors

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("cilf_progress", default=None)


def report(stage: str, done: int, total: int) -> None:
    """Report that ``done`` of ``total`` steps of a stage are done."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call ``listener(stage, done, total)`` for all work inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def within(work: str) -> Iterator[None]:
    """Report the stages inside the block as stages of some ``work``.

    >>> with listen(lambda stage, done, total: print(stage)), within("backbone"):
    ...     report("fit", 1, 20)
    backbone: fit
    """
    listener = _listener.get()
    if listener is None:
        yield
        return
    with listen(lambda stage, done, total: listener(f"{work}: {stage}", done, total)):
        yield
