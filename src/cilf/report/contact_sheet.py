"""Contact sheets: a PNG image with the exemplars of a cluster, each above its name."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cilf.core.extras import optional
from cilf.core.types import Array
from cilf.report.exemplars import shorten

MARGIN, TITLE, CAPTION = 8, 24, 14  # pixels
FONT_SIZE = 10  # pixels
MAX_CAPTION_LENGTH = 16  # characters
SIDE, PER_ROW = 96, 8  # pixels of an image, images side by side
INK, PAPER = (40, 40, 40), (255, 255, 255)


def make_contact_sheet(thumbnails: Array, captions: Sequence[str], title: str) -> bytes:
    """Make a PNG from (n, h, w) grey or (n, h, w, 3) colour images of uint8.

    >>> make_contact_sheet(np.zeros((2, 8, 8), np.uint8), ["a.png", "b.png"], "2 of 2")[1:4]
    b'PNG'
    """
    Image, ImageDraw, ImageFont = (_pillow(part) for part in ("Image", "ImageDraw", "ImageFont"))
    per_row = min(PER_ROW, len(captions))
    wide, tall = SIDE + MARGIN, SIDE + CAPTION + MARGIN
    size = (
        max(MARGIN + per_row * wide, MARGIN + SIDE * 4),
        MARGIN + TITLE + math.ceil(len(captions) / per_row) * tall,
    )
    sheet = Image.new("RGB", size, PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=FONT_SIZE)
    pen.text((MARGIN, MARGIN), title, fill=INK, font=ImageFont.load_default(size=FONT_SIZE + 4))
    for place, (thumbnail, caption) in enumerate(zip(thumbnails, captions, strict=True)):
        x = MARGIN + place % per_row * wide
        y = MARGIN + TITLE + place // per_row * tall
        sheet.paste(_scale(thumbnail), (x, y))
        pen.text((x, y + SIDE + 1), _format_caption(caption), fill=INK, font=font)
    content = io.BytesIO()
    sheet.save(content, format="PNG", optimize=True)
    return content.getvalue()


def _scale(thumbnail: Array) -> Any:
    """Scale a thumbnail to its place; it keeps its proportions."""
    Image = _pillow("Image")
    image = Image.fromarray(np.ascontiguousarray(thumbnail, dtype=np.uint8)).convert("RGB")
    factor = SIDE / max(image.width, image.height)
    size = max(1, int(image.width * factor)), max(1, int(image.height * factor))
    smooth = Image.Resampling.NEAREST if factor >= 3 else Image.Resampling.LANCZOS
    return image.resize(size, smooth)


def _format_caption(caption: str) -> str:
    """Shorten the caption to one line."""
    return shorten(" ".join(caption.split()), MAX_CAPTION_LENGTH)


def _pillow(part: str) -> Any:
    return optional(f"PIL.{part}", extra="report", purpose="making contact sheets")
