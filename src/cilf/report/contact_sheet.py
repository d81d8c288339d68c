"""Contact sheets as pictures: small images side by side, each over its name."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cilf.core.extras import optional
from cilf.core.types import Array
from cilf.report.exemplars import shorten

MARGIN, TITLE, CAPTION = 8, 24, 14  # pixels
FONT, LONGEST = 10, 16  # pixels, characters of a caption
INK, PAPER = (40, 40, 40), (255, 255, 255)


class Cell(NamedTuple):
    """The room of one instance, without its caption."""

    width: int
    height: int
    per_row: int


IMAGE = Cell(96, 96, 8)
STRIP = Cell(192, 16, 4)  # a vector, drawn as a strip of one pixel's height


def contact_sheet(thumbnails: Array, captions: Sequence[str], title: str) -> bytes:
    """A PNG of (n, h, w) grey or (n, h, w, 3) colour pictures of uint8, in rows.

    >>> contact_sheet(np.zeros((3, 8, 8), np.uint8), ["a.png", "b.png", "c.png"], "3 of 3")[1:4]
    b'PNG'
    """
    Image, ImageDraw, ImageFont = (_pillow(part) for part in ("Image", "ImageDraw", "ImageFont"))
    cell = STRIP if thumbnails.shape[1] == 1 else IMAGE
    per_row = min(cell.per_row, len(captions))
    wide, tall = cell.width + MARGIN, cell.height + CAPTION + MARGIN
    size = (
        max(MARGIN + per_row * wide, MARGIN + IMAGE.width * 4),
        MARGIN + TITLE + math.ceil(len(captions) / per_row) * tall,
    )
    sheet = Image.new("RGB", size, PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=FONT)
    pen.text((MARGIN, MARGIN), title, fill=INK, font=ImageFont.load_default(size=FONT + 4))
    for place, (picture, caption) in enumerate(zip(thumbnails, captions, strict=True)):
        x = MARGIN + place % per_row * wide
        y = MARGIN + TITLE + place // per_row * tall
        sheet.paste(_scaled(picture, cell), (x, y))
        pen.text((x, y + cell.height + 1), _printable(caption), fill=INK, font=font)
    packed = io.BytesIO()
    sheet.save(packed, format="PNG", optimize=True)
    return packed.getvalue()


def _scaled(picture: Array, cell: Cell) -> Any:
    """The picture as large as the cell allows, with its own proportions unless it is a strip."""
    Image = _pillow("Image")
    image = Image.fromarray(np.ascontiguousarray(picture, dtype=np.uint8)).convert("RGB")
    if cell is STRIP:
        return image.resize((cell.width, cell.height), Image.Resampling.NEAREST)
    factor = min(cell.width / image.width, cell.height / image.height)
    size = max(1, int(image.width * factor)), max(1, int(image.height * factor))
    smooth = Image.Resampling.NEAREST if factor >= 3 else Image.Resampling.LANCZOS
    return image.resize(size, smooth)


def _printable(caption: str) -> str:
    """One short line."""
    return shorten(" ".join(caption.split()), LONGEST)


def _pillow(part: str) -> Any:
    return optional(f"PIL.{part}", extra="report", purpose="snapshot contact sheets")
