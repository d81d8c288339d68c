from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

from cilf.data import load_instances
from cilf.workflow import Findings, export_findings, read_labels

pytest.importorskip("PIL")


def test_a_folder_for_each_class_and_cluster(pictures: Findings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_findings(pictures.path, out, to="class-folders")
    folders = {path.name: len(list(path.iterdir())) for path in out.iterdir() if path.is_dir()}
    assert folders == {
        "=cow": 1, "Hühner%2FKüken": 1, "hen": 4, "cat": 1, "known, but wrong": 1, "dog & co": 2,
        "cluster-1": 2,
    }  # fmt: skip
    assert len(load_instances(out, size=(6, 5))) == 12


def test_the_picture_is_the_file_it_comes_from(pictures: Findings, tmp_path: Path) -> None:
    from PIL import Image

    export_findings(pictures.path, tmp_path / "out", to="class-folders")
    sizes = []
    for path in (tmp_path / "out").glob("*/*.png"):
        with Image.open(path) as image:
            sizes.append(image.size)
    assert sorted(sizes) == [(5, 6)] * 10 + [(30, 40)] * 2
    [path] = (tmp_path / "out").glob("*cow/*.png")
    np.testing.assert_array_equal(
        np.asarray(Image.open(path)), pictures.instances(np.array([0]))[0]
    )


def test_moved_files_and_renamed_folders_are_labels(
    texts: Findings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    export_findings(texts.path, out, to="class-folders")
    before = read_labels(texts.path)[1]
    (out / "cluster-1").rename(out / "mouse")
    moved = next((out / "cat").iterdir())
    (out / "new" / "deeper").mkdir(parents=True)
    shutil.move(moved, out / "new" / "deeper")
    (out / "cat" / "notes.txt").write_text("mine")
    (out / "cat" / ".hidden").write_text("mine")
    with caplog.at_level(logging.WARNING, logger="cilf"):
        after = read_labels(out, texts.path)[1]
    assert after == before | {"sub/pic 5.png": "mouse", "007": "mouse", "plain": "new"}
    assert "1 files are not those of the export" in caplog.text


def test_texts_are_whole(texts: Findings, tmp_path: Path) -> None:
    export_findings(texts.path, tmp_path / "out", to="class-folders")
    [path] = (tmp_path / "out/=cow").iterdir()
    assert path.read_text() == "text 0\nof several <lines>"
