from __future__ import annotations

import io

import numpy as np
from PIL import Image

from cilf.report.contact_sheet import MARGIN, PER_ROW, SIDE, make_contact_sheet


def open_sheet(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def test_images_stand_in_rows() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (PER_ROW + 1, 8, 8), dtype=np.uint8)
    names = [f"{i}.png" for i in range(len(images))]
    two_rows = open_sheet(make_contact_sheet(images, names, "nine"))
    one_row = open_sheet(make_contact_sheet(images[:-1], names[:-1], "eight"))
    assert two_rows.width == one_row.width == MARGIN + PER_ROW * (SIDE + MARGIN)
    assert two_rows.height > one_row.height + SIDE


def test_a_long_caption_is_shortened() -> None:
    image = np.zeros((1, 8, 8), np.uint8)
    names = ["photos/" + "x" * n + "/end.jpg" for n in (50, 90)]
    first, second = (make_contact_sheet(image, [name], "") for name in names)
    assert first == second
