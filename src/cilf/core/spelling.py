"""Names that people type, compared as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from cilf.errors import BadInput


def check_spelling(names: Iterable[str], classes: Sequence[str]) -> None:
    """Refuse a name that differs from another one, known or new, in upper and lower case only.

    >>> check_spelling(["cat", "dog"], ["cat"])
    >>> check_spelling(["Cat"], ["cat"])
    Traceback (most recent call last):
    ...
    cilf.errors.BadInput: the name 'Cat' differs from 'cat' in case or blanks only: ...
    """
    known = {_folded(label): label for label in classes}
    for name in dict.fromkeys(names):
        other = known.setdefault(_folded(name), name)
        if other != name:
            raise BadInput(
                f"the name {name!r} differs from {other!r} in case or blanks only: write both the "
                "same way."
            )


def as_compared(name: str) -> str:
    """A name without blanks around it; accents may be written in two ways that look the same."""
    return unicodedata.normalize("NFC", name.strip())


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())
