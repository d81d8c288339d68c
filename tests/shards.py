"""Parquet shards of numbers, and folders of images, for tests of data in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np

WIDTH = 6


def write_shards(
    folder: Path,
    n_shards: int,
    n_rows: int,
    classes: range,
    seed: int,
    *,
    labelled: bool = False,
    width: int = WIDTH,
) -> None:
    """Write shards of two row groups each, with rows of normal classes in columns v0, v1, ..."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(0).normal(size=(8, WIDTH))
    for shard in range(n_shards):
        y = rng.integers(0, len(classes), n_rows)
        X = (centres[y] + rng.normal(size=(n_rows, WIDTH))).astype(np.float32)
        columns = {f"v{i}": X[:, i] for i in range(width)}
        labels = {"label": [f"class {label}" for label in y]} if labelled else {}
        path = folder / f"{shard}.parquet"
        pq.write_table(pa.table(columns | labels), path, row_group_size=-(-n_rows // 2))


def write_images(folder: Path, n: int, seed: int, *, bright: bool = False) -> None:
    """Write images of noise, dark or bright."""
    from PIL import Image

    folder.mkdir(parents=True)
    low = 128 if bright else 0
    pixels = np.random.default_rng(seed).integers(low, low + 128, (n, 16, 16, 3), dtype=np.uint8)
    for row, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{row:02}.png")
