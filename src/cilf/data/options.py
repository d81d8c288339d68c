"""The options of reading data of one's own, which every format takes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cilf.core import validation
from cilf.errors import BadConfig

SMALLEST = 4  # pixels a side


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``load_dataset`` and ``load_instances``, checked."""

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
        """Refuse options that have no meaning for these data."""
        for name in names:
            if getattr(self, name) is not None:
                raise BadConfig(
                    f"{name} is {getattr(self, name)!r}, which means nothing for {where}: leave it "
                    "out."
                )

    @classmethod
    def names(cls) -> list[str]:
        """The names of all options."""
        return [option.name for option in fields(cls)]


def _check_shape(shape: tuple[int, ...]) -> None:
    for side in shape[:2]:
        validation.whole_number("size", side, least=SMALLEST)
    if len(shape) != 2 and shape[2:] != (3,):
        raise BadConfig(f"size is {shape}: give pixels a side, (h, w), or (h, w, 3).")
