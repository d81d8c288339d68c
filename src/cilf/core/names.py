"""The one validation of class names that people type, in a file, a command or the console."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from cilf.errors import BadInput

LONGEST_NAME = 200  # characters


def normalize_name(typed: str) -> str:
    """A name in the form in which names are kept and compared.

    Blanks around it are removed. Accents that can be written in two ways are written in one.
    """
    return unicodedata.normalize("NFC", typed.strip())


def check_names(typed: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """Return the names in the form in which they are kept; refuse what is no name.

    Args:
        typed: The names as somebody typed them.
        known: The names of the classes that exist. These names are accepted as they are.

    A new name has 1 to 200 printable characters and differs from every other name, known or new,
    in more than case and blanks.

    >>> check_names([" cat", "dog "], known=["cat"])
    ['cat', 'dog']
    >>> check_names(["Cat"], known=["cat"])
    Traceback (most recent call last):
    ...
    cilf.errors.BadInput: the name 'Cat' differs from 'cat' in case or blanks only: ...
    """
    there = dict.fromkeys(known)
    spellings = {_fold(name): name for name in there}
    names = [normalize_name(name) for name in typed]
    for name in dict.fromkeys(name for name in names if name not in there):
        other = spellings.get(_fold(name))
        if other is None:
            _require_printable(name)
        elif other != name:
            raise BadInput(
                f"the name {name!r} differs from {other!r} in case or blanks only: write both the "
                "same way."
            )
        spellings[_fold(name)] = name
    return names


def check_name(typed: str, known: Iterable[str] = ()) -> str:
    """``check_names`` for a single name."""
    return check_names([typed], known)[0]


def _require_printable(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        shown = name if len(name) <= LONGEST_NAME else f"{name[:60]}..."
        raise BadInput(f"the name {shown!r} cannot be used: give 1 to {LONGEST_NAME} printable "
                       "characters.")  # fmt: skip


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())
