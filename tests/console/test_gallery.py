from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.console.gallery import Gallery, choose_exemplars, encode_png, write_gallery
from cilf.errors import BadInput

TEXTS = ["", "a", "Hühner 🐔"]


def write_texts(folder: Path) -> Gallery:
    return write_gallery(
        folder,
        ids=np.array(["x", "y", "z"]),
        label=np.array(["cat"] * 3),
        novelty=np.zeros(3, dtype=np.float32),
        cluster=np.array([-1, 0, 0]),
        embedding=np.eye(3),
        places=np.zeros((3, 2), dtype=np.float32),
        form="texts",
        thumbs=[text.encode() for text in TEXTS],
    )


def test_a_gallery_of_texts(tmp_path: Path) -> None:
    write_texts(tmp_path)
    gallery = Gallery(tmp_path)
    assert [gallery.excerpt(row) for row in range(3)] == TEXTS
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


def show_everything(gallery: Gallery) -> None:
    texts = [gallery.excerpt(row) for row in range(len(gallery.ids))]
    assert len(texts) == len(gallery.embedding)


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def pack(array: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("view.npz", lambda file: file.write_bytes(b"PK")),
        ("view.npz", make_pipe),
        ("view.npz", lambda file: file.unlink()),
        ("form.json", lambda file: file.write_text('{"form": "else"}')),
        ("form.json", lambda file: file.write_text("[]")),
        ("embedding.npy", lambda file: file.write_bytes(file.read_bytes()[:-1])),
        ("embedding.npy", lambda file: file.write_bytes(pack(np.eye(2, dtype=np.float32)))),
        ("embedding.npy", make_pipe),
        ("thumbs.npy", lambda file: file.write_bytes(pack(np.array([5, 2, 9])))),
        ("thumbs.npy", lambda file: file.write_bytes(pack(np.array([0.5, 1, 2])))),
        ("thumbs.bin", make_pipe),
    ],
)
def test_a_damaged_gallery_is_one_line(
    tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    write_texts(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(BadInput, match=rf"is damaged \({name} .*\): detect it again\.$"):
        show_everything(Gallery(tmp_path))
