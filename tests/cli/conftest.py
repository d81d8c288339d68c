"""Data of a user, as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from cilf.data import load_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Digits as PNG files in class folders."""
    data = load_dataset("digits")
    for i, (image, label) in enumerate(zip(data.train.X, data.train.y, strict=True)):
        if i < 400:
            place = tmp_path / "shots" / f"digit {label}"
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(place / f"{i}.png")
    return tmp_path / "shots"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Digits as rows of 64 numbers."""
    data = load_dataset("digits")
    lines = [",".join([*(f"p{i}" for i in range(64)), "digit"])]
    for image, label in zip(data.train.X[:400], data.train.y[:400], strict=True):
        lines.append(",".join([*map(str, image.ravel().tolist()), f"d{label}"]))
    (tmp_path / "pixels.csv").write_text("\n".join(lines))
    return tmp_path / "pixels.csv"
