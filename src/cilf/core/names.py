"""The one validation of class names: of those that people type, and of those of labelled data."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from cilf.errors import BadInput

LONGEST_NAME = 200  # characters
NOT_SHOWN = ("Cc", "Cf")  # categories of characters that leave no mark
VARIATIONS = range(0xFE00, 0xFE10)  # characters that choose a form of the one before
LOOK_ALIKES = str.maketrans(  # letters of Cyrillic, then of Greek, and those of Latin
    "\u0430\u0441\u0435\u0501\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u0475\u051d\u0445\u0443"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5",
    "acedhijlopqsvwxyaikvopu",
)


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

    A new name has 1 to 200 printable characters. It differs to the eye from every other name, known
    or new.

    >>> check_names([" cat", "dog "], known=["cat"])
    ['cat', 'dog']
    >>> check_names(["Cat"], known=["cat"])
    Traceback (most recent call last):
    ...
    cilf.errors.BadInput: the names 'Cat' and 'cat' look alike: write both the same way, or ...
    """
    there = dict.fromkeys(known)
    names = [normalize_name(name) for name in typed]
    fresh = dict.fromkeys(name for name in names if name not in there)
    spellings = {_fold(name): name for name in there} if fresh else {}
    for name in fresh:
        other = spellings.get(_fold(name))
        if other is None:
            _require_printable(name)
        elif other != name:
            raise _look_alike(name, other)
        spellings[_fold(name)] = name
    return names


def check_name(typed: str, known: Iterable[str] = ()) -> str:
    """``check_names`` for a single name."""
    return check_names([typed], known)[0]


def require_distinct(names: Iterable[str]) -> None:
    """Refuse names of labelled data that look alike, or that a terminal would obey.

    >>> require_distinct(["cat", "dog", "cat"])
    """
    spellings: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if any(unicodedata.category(character) == "Cc" for character in name):
            raise BadInput(f"the class {name!r} has control characters in its name: rename it.")
        if spellings.setdefault(_fold(name), name) != name:
            raise _look_alike(name, spellings[_fold(name)])


def _look_alike(name: str, other: str) -> BadInput:
    """The error about two names, with the difference in sight."""
    is_seen = name.isascii() and other.isascii()
    one, two = (repr(each) if is_seen else ascii(each) for each in (name, other))
    return BadInput(
        f"the names {one} and {two} look alike: write both the same way, or make them differ."
    )


def _require_printable(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        shown = name if len(name) <= LONGEST_NAME else f"{name[:60]}..."
        raise BadInput(f"the name {shown!r} cannot be used: give 1 to {LONGEST_NAME} printable "
                       "characters.")  # fmt: skip


@lru_cache(maxsize=1 << 16)
def _fold(name: str) -> str:
    """What the eye sees of a name: without case, width, and characters that are not shown."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    shown = (
        character
        for character in " ".join(plain.split())
        if unicodedata.category(character) not in NOT_SHOWN and ord(character) not in VARIATIONS
    )
    return "".join(shown).translate(LOOK_ALIKES)
