"""How to read a user's own data: one value that every loader family takes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cilf.core import validation
from cilf.errors import BadConfig

SMALLEST = 4  # pixels a side


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the files themselves do not say.

    Attributes:
        label: the column of a table that holds the class; one of the usual names if None.
        column: the column that holds the text or the image; found by its content if None.
        columns: the columns of numbers that instances consist of, in this order; all if None.
        size: pixels a side that images are brought to, or the shape of one, (h, w) in grey or
            (h, w, 3) in colour; if None, see ``images.common_size``.
        skip_bad: leave out what cannot be read, instead of refusing all of it.
        test_share: share of each class that is held out, where files do not say what is test.
    """

    label: str | None = None
    column: str | None = None
    columns: tuple[str, ...] | None = None
    size: int | tuple[int, ...] | None = None
    skip_bad: bool = False
    test_share: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.size, tuple):
            _check_shape(self.size)
        elif self.size is not None:
            validation.whole_number("size", self.size, least=SMALLEST)
        validation.number("test_share", self.test_share, least=0.01, most=0.9)

    def refuse(self, *names: str, where: str) -> None:
        """Say that options mean nothing for these data, rather than pass over them."""
        for name in names:
            if getattr(self, name) is not None:
                raise BadConfig(
                    f"{name} is {getattr(self, name)!r}, which means nothing for {where}: leave it "
                    "out."
                )

    @classmethod
    def names(cls) -> list[str]:
        return [option.name for option in fields(cls)]


def _check_shape(shape: tuple[int, ...]) -> None:
    for side in shape[:2]:
        validation.whole_number("size", side, least=SMALLEST)
    if len(shape) != 2 and shape[2:] != (3,):
        raise BadConfig(f"size is {shape}: give pixels a side, (h, w), or (h, w, 3).")
