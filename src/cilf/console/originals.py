"""Pictures large enough to judge: the file that an instance comes from, or what the gallery keeps.

A request names a row, never a path. The path comes from the detection, and is read only where the
console may read.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cilf.console.gallery import TEXTS
from cilf.console.service import Console, NotFound
from cilf.core.extras import optional
from cilf.data.pixels import BROKEN, FORMATS, refuse_bombs

MEDIA = {  # formats of pillow that browsers show
    "JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp",
    "BMP": "image/bmp",
}  # fmt: skip
MAX_PIXELS = 50_000_000
ORIGINAL, WHOLE, THUMBNAIL = "original", "whole", "thumbnail"  # what a picture is


@dataclass(frozen=True)
class Picture:
    """An encoded picture; ``what`` is "original", "whole" or "thumbnail"."""

    content: bytes
    media: str
    what: str


def find_file(console: Console, window: int, row: int) -> Path | None:
    """The file that an instance comes from; None if its window comes from no folder of files."""
    source = Path(console.window(window).source)
    identity = PurePosixPath(console.open(window).gallery.ids[row])
    if not source.is_dir() or identity.is_absolute() or ".." in identity.parts:
        return None
    path = source / identity
    return path if path.is_file() and console.is_readable(path) else None


def read_picture(console: Console, window: int, row: int, side: int | None = None) -> Picture:
    """The picture of an instance.

    Args:
        side: the most pixels of a side; None is the original.

    The gallery's own picture is read if the source has no file for the instance, or if the file
    has been removed since.
    """
    gallery = console.open(window).gallery
    if row >= len(gallery.ids) or gallery.form == TEXTS:
        raise NotFound(f"row {row} has no picture.")
    path = find_file(console, window, row)
    picture = None if path is None else _encode(path, side)
    if picture is not None:
        return picture
    whole = gallery.whole(row)
    if whole is not None:
        return Picture(whole, "image/png", WHOLE)
    return Picture(gallery.thumb(row), "image/png", THUMBNAIL)


def _encode(path: Path, side: int | None) -> Picture | None:
    """The file as it is if a browser shows it, else as PNG; None if it cannot be read any more."""
    Image = optional("PIL.Image", extra="console", purpose="pictures")
    ImageOps = optional("PIL.ImageOps", extra="console", purpose="pictures")
    try:
        with refuse_bombs(), Image.open(path, formats=FORMATS) as image:
            format, (width, height) = image.format, image.size
            if width * height > MAX_PIXELS:
                return None
            if format in MEDIA and (side is None or max(width, height) <= side):
                return Picture(path.read_bytes(), MEDIA[format], ORIGINAL)
            image.draft(None, (side or width, side or height))
            shown = ImageOps.exif_transpose(image)
            shown = shown.convert("RGBA" if shown.has_transparency_data else "RGB")
            shown.thumbnail((side or width, side or height))
            packed = io.BytesIO()
            shown.save(packed, format="PNG")
            return Picture(packed.getvalue(), "image/png", ORIGINAL)
    except (*BROKEN, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None
