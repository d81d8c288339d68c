"""Examples in the documentation run in a folder with the data they talk about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

collect_ignore = ["generate"]  # it needs the extra docs

FABRICS = ("checked", "dotted", "striped")
TOPICS = {
    "cooking": ("simmer the sauce", "knead the dough", "season the soup", "bake the bread"),
    "football": ("score a goal", "pass the ball", "win the match", "save a penalty"),
    "weather": ("expect heavy rain", "strong winds tonight", "a sunny morning", "snow is coming"),
}
EXTRAS = (
    "today", "again", "if you can", "as planned", "with friends", "this week", "once more",
    "at last", "right now", "for us",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _example_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)


def write_examples(folder: Path) -> None:
    """photos/, fabrics/, new_photos/, measurements.csv, notes.csv, catalogue.csv and arrays.npz."""
    rng = np.random.default_rng(0)
    for fabric in FABRICS:
        for i in range(30):
            _paint(folder / "photos" / fabric / f"{i:02}.jpg", fabric, rng)
    for i in range(60):
        _paint(folder / "new_photos" / f"IMG_{i:03}.jpg", FABRICS[i % 3], rng)
    _write_tables(folder, rng)
    rng = np.random.default_rng(1)
    for fabric in FABRICS[:2]:
        for i in range(40):
            _paint(folder / "fabrics" / fabric / f"{i:02}.jpg", fabric, rng)


@pytest.fixture
def more_photos() -> Callable[[], None]:
    """Paints what comes into new_photos/ overnight."""

    def paint() -> None:
        rng = np.random.default_rng(2)
        for i in range(60, 84):
            _paint(Path("new_photos") / f"IMG_{i:03}.jpg", FABRICS[i % 3], rng)

    return paint


def _paint(path: Path, fabric: str, rng: np.random.Generator) -> None:
    """A piece of fabric in two colours, in a size of its own."""
    from PIL import Image

    height, width = rng.integers(30, 90, 2)
    period = rng.uniform(8, 12)
    y, x = np.mgrid[:height, :width] / period + rng.uniform(0, 1, (2, 1, 1))
    pattern = {
        "checked": (np.floor(x) + np.floor(y)) % 2 == 0,
        "dotted": (x % 1 - 0.5) ** 2 + (y % 1 - 0.5) ** 2 < 0.1,
        "striped": x % 1 < 0.5,
    }[fabric]
    dark, light = rng.integers(0, 110, 3), rng.integers(150, 256, 3)
    noisy = np.where(pattern[..., None], dark, light) + rng.normal(0, 6, (height, width, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(path)


def _write_tables(folder: Path, rng: np.random.Generator) -> None:
    kinds = np.array(["bolt", "nut", "screw"]).repeat(40)
    x = rng.normal(np.arange(3).repeat(40)[:, None] * 4, 1.0, (120, 3))
    rows = [f"{a:.3f},{b:.3f},{c:.3f},{kind}" for (a, b, c), kind in zip(x, kinds, strict=True)]
    _write(folder / "measurements.csv", "length,width,weight,label", rows)
    notes = [
        f"{phrase} {extra},{topic}"
        for topic, phrases in TOPICS.items()
        for phrase in phrases
        for extra in EXTRAS
    ]
    _write(folder / "notes.csv", "text,topic", notes)
    photos = sorted((folder / "photos").rglob("*.jpg"))
    listed = [f"{photo.relative_to(folder)},{photo.parent.name}" for photo in photos]
    _write(folder / "catalogue.csv", "file,label", listed)
    np.savez(folder / "arrays.npz", x=x, y=kinds)


def _write(path: Path, head: str, rows: list[str]) -> None:
    path.write_text("\n".join([head, *rows]) + "\n")
