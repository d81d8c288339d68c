from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from cilf.console.gallery import Gallery, choose_exemplars, encode_png, write_gallery


def test_a_gallery_of_texts(tmp_path: Path) -> None:
    texts = ["", "a", "Hühner 🐔"]
    write_gallery(
        tmp_path,
        ids=np.array(["x", "y", "z"]),
        label=np.array(["cat"] * 3),
        novelty=np.zeros(3, dtype=np.float32),
        cluster=np.array([-1, 0, 0]),
        embedding=np.eye(3),
        places=np.zeros((3, 2), dtype=np.float32),
        form="texts",
        thumbs=[text.encode() for text in texts],
    )
    gallery = Gallery(tmp_path)
    assert [gallery.excerpt(row) for row in range(3)] == texts
    assert gallery.row_of == {"x": 0, "y": 1, "z": 2}
    np.testing.assert_array_equal(gallery.embedding, np.eye(3, dtype=np.float32))


def test_pictures_are_encoded_without_loss() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode_png(picture)))), picture)


def test_exemplars_of_small_clusters() -> None:
    embedding = np.arange(3.0)[:, None]
    one = choose_exemplars(embedding, np.array([2]), seed=0)
    assert (one.medoid, one.nearest, one.farthest, one.random) == (2, [], [], [])
    two = choose_exemplars(embedding, np.array([0, 2]), seed=0)
    assert sorted([two.medoid, *two.nearest]) == [0, 2]
