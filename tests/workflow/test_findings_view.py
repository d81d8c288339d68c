from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from PIL import Image

from cilf import workflow
from cilf.core import Detection
from cilf.data import Instances
from cilf.workflow import Findings
from cilf.workflow.findings_writer import write_findings


def detection(cluster: list[int]) -> Detection:
    n = len(cluster)
    return Detection(
        novelty=np.arange(n, dtype=np.float32), label=np.array(["a"] * n),
        cluster=np.array(cluster), n_novel=max(cluster) + 1, curve={}, embedding=np.eye(n),
        novelty_p=np.ones(n, dtype=np.float32),
    )  # fmt: skip


def test_every_member_has_a_picture_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    sizes = {"small.png": (40, 30), "large.png": (300, 1024)}
    for name, size in sizes.items():
        Image.new("RGB", size, "red").save(tmp_path / "new" / name)
    ids = np.array([*sizes, "gone.png", "known.png"])
    X = np.zeros((4, 8, 8), np.uint8)
    about = {"data": str(tmp_path / "new")}
    found = write_findings(tmp_path / "f", about, Instances(X, ids), detection([0, 0, 1, -1]))
    assert found.page == tmp_path / "f/index.html"
    shown = {}
    for picture in re.findall(r'<img src="([^"]+)" alt="([^"]+)"', found.page.read_text()):
        with Image.open(tmp_path / "f" / picture[0]) as opened:
            shown[picture[1]] = opened.size
    assert shown == {"small.png": (40, 30), "large.png": (150, 512), "gone.png": (8, 8)}


def test_numbers_are_pictured_on_one_scale(tmp_path: Path) -> None:
    X = np.zeros((3, 8, 8), np.float32)
    X[0], X[1] = 1.0, 2.0
    write_findings(
        tmp_path / "f", {}, Instances(X, np.array(["a", "b", "c"])), detection([0, 0, -1])
    )
    brightest = []
    for path in sorted((tmp_path / "f/pictures").iterdir()):
        with Image.open(path) as picture:
            brightest.append(int(np.asarray(picture).max()))
    assert brightest == [128, 255]


def test_a_table_shows_its_unusual_columns(points: Path) -> None:
    text = (points / "found/index.html").read_text()
    assert text.count("<dt>y</dt>") > 40  # "up" and "down" are far from the known classes in y
    assert Findings.open("found").columns == ("x", "y")


def test_all_of_a_text_is_shown(tmp_path: Path) -> None:
    texts = np.array(["<b>first</b>\nsecond line " + "word " * 300, "known"], dtype=object)
    ids = np.array(["t:0", "t:1"])
    found = write_findings(tmp_path / "f", {}, Instances(texts, ids, ("note",)), detection([0, -1]))
    assert found.page is not None
    shown = found.page.read_text()
    assert "&lt;b&gt;first&lt;/b&gt;\nsecond line" in shown
    assert shown.count("word ") >= 300


def test_a_page_can_be_left_out(points: Path) -> None:
    findings = workflow.detect("model", "new.csv", "later", page=False)
    assert findings.page is None
