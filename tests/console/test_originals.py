from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from cilf.console import originals
from cilf.console.app import make_app
from cilf.console.gallery import encode_png
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store

from .conftest import URL, put_window


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("photos")


@pytest.fixture
def with_files(store: Store, folder: Path) -> Console:
    made = Console(store, store.folder / "model", [folder])
    put_window(made, source=folder)
    return made


def size_of(content: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(content)).size


def test_the_original_is_sent_as_it_is(with_files: Console, folder: Path) -> None:
    with TestClient(make_app(with_files, Access()), base_url=URL) as client:
        whole = client.get("/api/windows/1/pictures/30")
        assert whole.content == (folder / "cow-30.png").read_bytes()
        assert (whole.headers["content-type"], whole.headers["x-picture"]) == (
            "image/png",
            "original",
        )
        assert size_of(client.get("/api/windows/1/pictures/30?side=40").content) == (40, 40)
        assert client.get("/api/windows/1/pictures/50").status_code == 404
        assert client.get("/api/windows/1/pictures/-1").status_code == 422


def test_a_format_that_browsers_do_not_show_becomes_png(with_files: Console, folder: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 255, (30, 20), dtype=np.uint8)
    Image.fromarray(picture).save(folder / "cow-31.png", format="TIFF")
    found = originals.read_picture(with_files, 1, 31)
    assert (found.media, found.what, size_of(found.content)) == ("image/png", "original", (20, 30))


@pytest.mark.parametrize("damage", ["gone", "no image", "link out of the roots", "roots changed"])
def test_a_file_that_may_not_be_read_gives_the_thumbnail(
    with_files: Console, folder: Path, tmp_path: Path, damage: str
) -> None:
    path = folder / "cow-30.png"
    path.unlink()
    if damage == "no image":
        path.write_bytes(b"<svg onload=alert(1)>")
    elif damage == "link out of the roots":
        (tmp_path / "secret.png").write_bytes(encode_png(np.zeros((99, 99), dtype=np.uint8)))
        path.symlink_to(tmp_path / "secret.png")
    elif damage == "roots changed":
        path.write_bytes(encode_png(np.zeros((99, 99), dtype=np.uint8)))
        with_files.roots = [tmp_path]
    found = originals.read_picture(with_files, 1, 30)
    assert (found.what, size_of(found.content)) == ("thumbnail", (8, 8))


def test_an_identity_never_leaves_its_folder(with_files: Console, folder: Path) -> None:
    (folder.parent / "secret.png").write_bytes(encode_png(np.zeros((9, 9), dtype=np.uint8)))
    ids = with_files.open(1).gallery.ids
    for identity in ("../secret.png", str(folder.parent / "secret.png")):
        ids[30] = identity
        assert originals.find_file(with_files, 1, 30) is None, identity
    ids[30] = os.path.join("sub", "..", "cow-31.png")  # noqa: PTH118
    assert originals.find_file(with_files, 1, 30) is None


def test_uploads_may_be_read_whatever_the_roots(store: Store, folder: Path) -> None:
    console = Console(store, store.folder / "model", [folder])
    uploads = store.folder / "uploads" / "one"
    uploads.mkdir(parents=True)
    put_window(console, source=uploads)
    assert originals.read_picture(console, 1, 3).what == "original"
