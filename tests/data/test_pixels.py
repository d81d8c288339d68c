from __future__ import annotations

import gc
import io
import os
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from cilf.core.types import Array
from cilf.data.pixels import (
    Encoded,
    Form,
    Header,
    Unreadable,
    read_header,
    read_pixels,
    refuse_bombs,
)

GREY = Form((5, 7), colour=False)
COLOUR = Form((5, 7), colour=True)
RGB = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(values: Array, kind: str = "PNG") -> bytes:
    return encode(Image.fromarray(values), kind)


def pixels(encoded: Encoded, form: Form) -> Array:
    result = read_pixels(encoded, form)
    assert isinstance(result, np.ndarray), result
    assert result.dtype == np.uint8
    assert result.shape == form.shape
    return result


def reason(encoded: Encoded, form: Form = COLOUR) -> str:
    """Why its pixels cannot be read."""
    result = read_pixels(encoded, form)
    assert isinstance(result, Unreadable)
    return result.reason


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF"])
def test_lossless_colours_are_kept_exactly(kind: str) -> None:
    image = Image.fromarray(RGB)
    encoded = encode(image, kind)
    assert (pixels(encoded, COLOUR) == RGB).all()
    header = read_header(encoded)
    assert header == Header((5, 7), "P" if kind == "GIF" else "RGB")
    assert isinstance(header, Header)
    assert not header.grey


def test_lossless_webp_is_read() -> None:
    assert (pixels(encode(Image.fromarray(RGB), "WEBP", lossless=True), COLOUR) == RGB).all()


def test_a_path_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "a b é.png"
    path.write_bytes(encode(Image.fromarray(RGB)))
    assert (pixels(path, COLOUR) == RGB).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "I", "F"])
def test_these_modes_are_grey(mode: str) -> None:
    assert Header((1, 1), mode).grey


@pytest.mark.parametrize("mode", ["P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_these_modes_have_colours(mode: str) -> None:
    assert not Header((1, 1), mode).grey


def test_grey_in_both_forms() -> None:
    values = RGB[..., 0]
    assert (pixels(grey(values), GREY) == values).all()
    assert (pixels(grey(values), COLOUR) == values[..., None]).all()


def test_black_and_white() -> None:
    values = RGB[..., 0] > 127
    assert (pixels(grey(values), GREY) == values * 255).all()


def test_cmyk_has_its_colours() -> None:
    red = Image.new("CMYK", (7, 5), (0, 255, 255, 0))
    assert pixels(encode(red, "TIFF"), COLOUR)[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_to_8(kind: str) -> None:
    values = np.arange(35, dtype=np.uint16).reshape(5, 7) * 257
    assert (pixels(grey(values, kind), GREY) == np.arange(35).reshape(5, 7)).all()
    dark = np.full((5, 7), 200, dtype=np.uint16)  # not stretched: 200 of 65,535 is black
    assert (pixels(grey(dark, kind), GREY) == 1).all()


def test_16_bits_of_a_pgm_file_are_scaled_to_8() -> None:
    values = np.arange(35, dtype=">u2").reshape(5, 7)
    encoded = b"P5 7 5 65535\n" + (values * 257).astype(">u2").tobytes()
    assert (pixels(encoded, GREY) == values).all()


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        pytest.param(np.array([0, 7, 255], dtype=np.int32), [0, 7, 255], id="8 bits"),
        pytest.param(np.array([0, 257, 65535], dtype=np.int32), [0, 1, 255], id="16 bits"),
        pytest.param(np.array([-100, -20, 100], dtype=np.int32), [0, 102, 255], id="signed"),
        pytest.param(np.array([0, 10**6, 10**7], dtype=np.int32), [0, 26, 255], id="32 bits"),
        pytest.param(np.array([0, 0.2, 1], dtype=np.float32), [0, 51, 255], id="unit"),
        pytest.param(np.array([0, 0.6, 200], dtype=np.float32), [0, 1, 200], id="floats to 255"),
        pytest.param(np.array([-1, 0, 1], dtype=np.float32), [0, 128, 255], id="around 0"),
        pytest.param(np.array([-3, -3, -3], dtype=np.float32), [0, 0, 0], id="constant"),
    ],
)
def test_deeper_greys_are_scaled_by_a_ceiling_or_by_their_range(
    values: Array, levels: list[int]
) -> None:
    encoded = grey(values[None], "TIFF")
    assert pixels(encoded, Form((1, 3), colour=False)).tolist() == [levels]


def test_values_that_are_not_finite_are_refused() -> None:
    values = np.array([[0.5, np.nan]], dtype=np.float32)
    assert reason(grey(values, "TIFF")) == "some of its values are not finite"


def test_transparent_parts_are_laid_on_white() -> None:
    half = np.zeros((5, 7, 4), dtype=np.uint8)
    half[:, :3, 3] = 255  # black on the left, nothing on the right
    half[:, 3, 3] = 51  # a fifth of black
    found = pixels(encode(Image.fromarray(half)), COLOUR)
    assert found[0, :, 0].tolist() == [0, 0, 0, 204, 255, 255, 255]
    found = pixels(encode(Image.fromarray(half).convert("LA")), GREY)
    assert found[0].tolist() == [0, 0, 0, 204, 255, 255, 255]


def test_a_transparent_colour_of_a_palette_is_white() -> None:
    image = Image.new("P", (7, 5), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    found = pixels(encode(image, transparency=0), COLOUR)
    assert found[0, :2].tolist() == [[255, 255, 255], [40, 50, 60]]


def test_the_first_frame_of_an_animation_counts() -> None:
    frames = [Image.new("L", (7, 5), level) for level in (10, 200)]
    encoded = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (pixels(encoded, GREY) == 10).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_images_are_turned_as_exif_says(kind: str, orientation: int) -> None:
    image = Image.fromarray(RGB)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    encoded = encode(image, kind, exif=exif, **options)
    image.getexif()[0x0112] = orientation
    shown = np.array(ImageOps.exif_transpose(image))
    assert read_header(encoded) == Header(shown.shape[:2], "RGB")
    assert (pixels(encoded, Form(shown.shape[:2], colour=True)) == shown).all()


def test_damaged_exif_does_not_spoil_an_image() -> None:
    encoded = encode(Image.fromarray(RGB), exif=b"Exif\0\0MM\0*\xff\xff\xff")
    assert read_header(encoded) == Header((5, 7), "RGB")
    assert (pixels(encoded, COLOUR) == RGB).all()


def test_the_whole_image_is_squeezed() -> None:
    image = np.zeros((40, 200, 3), dtype=np.uint8)
    image[:, 100:, 0] = 255
    found = pixels(encode(Image.fromarray(image)), Form((10, 10), colour=True))
    assert (found[:, :4] <= 5).all()
    assert (found[:, 6:, 0] >= 250).all()
    assert (found[..., 1:] == 0).all()


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_large_jpeg_is_the_same_decoded_in_part_or_whole(orientation: int) -> None:
    """97 pixels are 12 blocks and a padded one, whose padding must not become part of it."""
    ramp = np.linspace(0, 255, 97).astype(np.uint8)
    image = Image.fromarray(np.tile(ramp, (97, 1)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = pixels(encode(image, "JPEG", exif=exif, quality=95), Form((4, 6), colour=False))
    image.getexif()[0x0112] = orientation
    expected = np.array(ImageOps.exif_transpose(image).resize((6, 4), Image.Resampling.BICUBIC))
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 4


def truncated(side: int = 64) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return encode(Image.fromarray(noise))[:2000]


def test_a_truncated_image_has_a_header_but_no_pixels() -> None:
    assert read_header(truncated()) == Header((64, 64), "RGB")
    assert "truncated" in reason(truncated()).lower()


def claiming(width: int, height: int) -> bytes:
    """A PNG whose header claims a size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13)
    return start + body + struct.pack(">I", zlib.crc32(body)) + encode(Image.fromarray(RGB))[33:]


@pytest.mark.parametrize("side", [10_000, 50_000])  # pillow warns of one and refuses the other
def test_images_that_claim_to_be_huge_are_refused(side: int) -> None:
    with refuse_bombs():
        found = read_header(claiming(side, side))
    assert isinstance(found, Unreadable)
    assert f"({side * side} pixels) exceeds limit" in found.reason


def test_what_is_no_image_is_told_in_one_line(tmp_path: Path) -> None:
    for content in (b"", b"hello", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"):
        assert reason(content) == "not an image of a known format"
    assert reason(tmp_path / "missing.png") == "No such file or directory"
    assert reason(tmp_path) == "not a regular file"


def test_damaged_bytes_are_unreadable_and_never_a_crash() -> None:
    rng = random.Random(0)
    image = Image.fromarray(RGB)
    kinds = [("PNG", "RGBA"), ("PNG", "P"), ("JPEG", "RGB"), ("GIF", "P"), ("BMP", "RGB")]
    outcomes: set[type] = set()
    for kind, mode in [*kinds, ("WEBP", "RGB"), ("PPM", "L")]:
        encoded = encode(image.convert(mode), kind)
        for _ in range(150):
            damaged = bytearray(encoded)
            for _ in range(rng.choice([1, 4, 16])):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            with refuse_bombs():
                outcomes.add(type(read_header(bytes(damaged))))
                outcomes.add(type(read_pixels(bytes(damaged), COLOUR)))
    assert outcomes == {Header, Unreadable, np.ndarray}


def test_files_are_closed(tmp_path: Path) -> None:
    (tmp_path / "good.png").write_bytes(encode(Image.fromarray(RGB)))
    (tmp_path / "bad.png").write_bytes(truncated())
    for path in tmp_path.iterdir():
        read_header(path)
        read_pixels(path, COLOUR)
    gc.collect()  # of a file left open it makes a warning, which is an error in tests


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert reason(tmp_path / "pipe.png") == "not a regular file"
