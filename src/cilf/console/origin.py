"""Who makes a request, and from where: the audit log keeps both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from urllib.parse import unquote

MAX_PERSON = 100  # characters
HEADER = "x-person"  # the name of the person, percent-encoded


class Origin(NamedTuple):
    """The name that a person has typed, and the address of the machine."""

    person: str = ""
    address: str = ""


NOWHERE = Origin()  # outside of requests
_origin: ContextVar[Origin] = ContextVar("cilf_console_origin", default=NOWHERE)


def current_origin() -> Origin:
    """The origin of the request that is being answered."""
    return _origin.get()


@contextmanager
def come_from(origin: Origin) -> Iterator[None]:
    """Set the origin of everything inside the block."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


def read_person(header: str) -> str:
    """The name in a header.

    >>> read_person("J%C3%BCrgen%0A")
    'J\xfcrgen'
    """
    name = unquote(header, errors="replace")[:MAX_PERSON]
    return "".join(character for character in name if character.isprintable()).strip()
