"""How to read a user's own data: one value that every loader family takes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cilf.core import validation


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the files themselves do not say.

    Attributes:
        label: the column of a table that holds the class; one of the usual names if None.
        column: the column that holds the text or the image; found by its content if None.
        size: pixels a side that images are brought to; if None, see ``images.common_size``.
        skip_bad: leave out what cannot be read, instead of refusing all of it.
        test_share: share of each class that is held out, where files do not say what is test.
    """

    label: str | None = None
    column: str | None = None
    size: int | None = None
    skip_bad: bool = False
    test_share: float = 0.2

    def __post_init__(self) -> None:
        if self.size is not None:
            validation.whole_number("size", self.size, least=4)
        validation.number("test_share", self.test_share, least=0.01, most=0.9)

    @classmethod
    def names(cls) -> list[str]:
        return [option.name for option in fields(cls)]
