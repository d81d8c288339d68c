"""One encoded image: its header, and its pixels in a given form."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np

from cilf.core.extras import optional
from cilf.core.reading import open_file
from cilf.core.types import Array

Encoded = bytes | Path  # an image as it lies on disk or in a table
Size = tuple[int, int]  # height, width

IMAGE_SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"]
)
# No other format is opened, whatever the suffix: some formats of pillow start other programs.
FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "TIFF", "WEBP", "PPM")
GREY = ("1", "L", "LA", "I", "F")  # and the 16-bit modes, I;16 in either byte order
BROKEN = (  # errors that pillow raises on damaged files
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError,
    AssertionError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip
ORIENTATION = 0x0112  # the EXIF tag
SHARPNESS = 2  # a large photo is decoded at this multiple of the target size

Result = TypeVar("Result")


@dataclass(frozen=True)
class Header:
    """The properties of an image before it is decoded."""

    size: Size  # after rotation to the upright position
    mode: str

    @property
    def grey(self) -> bool:
        """Whether the image has no colours."""
        return self.mode in GREY or self.mode.startswith("I;16")


@dataclass(frozen=True)
class Form:
    """The size and the colours of decoded images."""

    size: Size
    colour: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one image: (h, w), or (h, w, 3) in colour."""
        return (*self.size, 3) if self.colour else self.size

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> Form:
        """The form of images of a shape.

        >>> Form.of_shape((28, 20, 3))
        Form(size=(28, 20), colour=True)
        """
        height, width, *channels = shape
        return cls((height, width), bool(channels))


@dataclass(frozen=True)
class Unreadable:
    """An image that cannot be read, and the reason."""

    reason: str


def is_image(path: PurePath) -> bool:
    """Whether a file name has the suffix of an image.

    >>> is_image(Path("cat.JPG")), is_image(Path("notes.txt"))
    (True, False)
    """
    return path.suffix.lower() in IMAGE_SUFFIXES


def read_header(encoded: Encoded) -> Header | Unreadable:
    """Read the size and the mode of an image, without decoding it."""
    return _read(encoded, _header)


def read_pixels(encoded: Encoded, form: Form) -> Array | Unreadable:
    """Read the pixels of an image as uint8 of ``form.shape``.

    The whole image is resized, without cropping or padding. It is rotated by its EXIF orientation.
    Transparent parts become white. The first frame of an animation counts. Grey levels of more
    than 8 bits are scaled to 8 bits.
    """
    return _read(encoded, lambda image: _pixels(image, form))


@contextmanager
def refuse_bombs() -> Iterator[None]:
    """Refuse images so large that pillow warns of them, and silence its other warnings.

    The block surrounds the reading of all images, because all threads share the warning filters.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("error", _pillow("Image").DecompressionBombWarning)
        yield


def _pillow(part: str) -> Any:
    return optional(f"PIL.{part}", extra="data", purpose="reading images")


def _read(encoded: Encoded, use: Callable[[Any], Result]) -> Result | Unreadable:
    Image = _pillow("Image")
    try:
        file = BytesIO(encoded) if isinstance(encoded, bytes) else open_file(encoded)
        with file, Image.open(file, formats=FORMATS) as image:
            return use(image)
    except (*BROKEN, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return Unreadable(_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, _pillow("Image").UnidentifiedImageError):
        return "not an image of a known format"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _header(image: Any) -> Header:
    width, height = image.size
    size = (width, height) if _is_sideways(_orientation(image)) else (height, width)
    return Header(size, image.mode)


def _pixels(image: Any, form: Form) -> Array:
    Image = _pillow("Image")
    orientation = _orientation(image)
    height, width = form.size
    target = (height, width) if _is_sideways(orientation) else (width, height)
    # A JPEG can be decoded at a fraction of its size. The box excludes the padding.
    drafted = image.draft(None, (SHARPNESS * target[0], SHARPNESS * target[1]))
    box = drafted[1] if drafted else None
    plain = _to_eight_bits(image).convert("RGB" if form.colour else "L")
    resized = plain.resize(target, Image.Resampling.BICUBIC, box, reducing_gap=SHARPNESS)
    turn = _list_turns().get(orientation)
    return np.array(resized if turn is None else resized.transpose(turn))


def _orientation(image: Any) -> int:
    if image.format == "TIFF":  # pillow rotates these by itself
        return 1
    try:
        # The method of the base class: that of PNG would decode the image.
        return int(_pillow("Image").Image.getexif(image).get(ORIENTATION, 1))
    except BROKEN:  # an image with damaged metadata is still used
        return 1


def _is_sideways(orientation: int) -> bool:
    return orientation in (5, 6, 7, 8)


def _list_turns() -> dict[int, Any]:
    turn = _pillow("Image").Transpose
    return {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_270,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_90,
    }


def _to_eight_bits(image: Any) -> Any:
    """Convert an image to 8 bits per channel without transparency."""
    image.load()
    if image.mode == "F":
        return _scale_levels(image, (1, 255, 65535))
    if image.mode == "I" and image.format == "TIFF":
        return _scale_levels(image, (255, 65535))
    if image.mode == "I" or image.mode.startswith("I;16"):
        return _scale_levels(image, (65535,))
    return _lay_on_white(image) if image.has_transparency_data else image


def _scale_levels(image: Any, ceilings: tuple[int, ...]) -> Any:
    """Scale grey levels to 0..255, by the first ceiling above all of them, else by their range."""
    values = np.asarray(image).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(values).all():
        raise ValueError("some of its values are not finite")
    if low >= 0 and high <= ceilings[-1]:
        low, high = 0.0, float(next(ceiling for ceiling in ceilings if high <= ceiling))
    levels = np.round((values - low) * (255 / max(high - low, 1e-300)))
    return _pillow("Image").fromarray(levels.astype(np.uint8))


def _lay_on_white(image: Any) -> Any:
    layer = image.convert("RGBA")
    white = _pillow("Image").new("RGBA", layer.size, "white")
    return _pillow("Image").alpha_composite(white, layer)
