from __future__ import annotations

import csv
import errno
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf import workflow
from cilf.core import Detection
from cilf.data import Instances
from cilf.errors import BadInput
from cilf.workflow import Findings, findings_writer
from cilf.workflow.findings_writer import write_findings


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_the_tables_say_what_was_found(points: Path) -> None:
    found = Findings.open("found").assignments
    rows = rows_of(points / "found/findings.csv")
    ours = ["identity", "label", "source", "novelty", "novelty_p", "cluster", "name"]
    assert list(rows[0]) == [*ours, "x", "y"]
    assert {row["source"] for row in rows} == {"model"}
    assert sorted(row["identity"] for row in rows) == sorted(found.ids.tolist())
    new = [row for row in rows if row["cluster"]]
    assert rows[: len(new)] == new  # on top
    assert [row["cluster"] for row in new] == sorted(row["cluster"] for row in new)
    first = [float(row["novelty"]) for row in new if row["cluster"] == "1"]
    assert first == sorted(first, reverse=True)
    assert {row["label"] for row in new} == {""}
    assert {row["label"] for row in rows if not row["cluster"]} == {"left", "right"}
    assert {row["name"] for row in rows} == {""}
    clusters = rows_of(points / "found/clusters.csv")
    assert [(row["cluster"], row["sheet"]) for row in clusters] == [
        ("1", "cluster-1.txt"), ("2", "cluster-2.txt"),
    ]  # fmt: skip
    assert [int(row["instances"]) for row in clusters] == found.cluster_sizes
    assert sum(found.cluster_sizes) == found.n_novel == len(new)
    assert sum(found.known_counts.values()) + found.n_novel == 100


def detection(cluster: list[int]) -> Detection:
    n = len(cluster)
    return Detection(
        novelty=np.arange(n, dtype=np.float32), label=np.array(["a"] * n),
        cluster=np.array(cluster), n_novel=max(cluster) + 1, curve={}, embedding=np.eye(n),
        novelty_p=np.ones(n, dtype=np.float32),
    )  # fmt: skip


def test_texts_are_kept_without_pickles(tmp_path: Path) -> None:
    texts = np.array(["plain", "ümläut 日本", "two\nlines, and a comma"], dtype=object)
    ids = np.array(["t:0", "t:1", "t:2"])
    found = detection([0, 0, -1])
    out = tmp_path / "found"
    write_findings(out, {"model_id": "", "version": None}, Instances(texts, ids), found)
    read = Findings.open(out)
    assert read.instances(np.array([2, 1])).tolist() == [texts[2], texts[1]]
    assert (out / "cluster-1.txt").read_text() == (
        "cluster 1: 2 of 2 instances\n\nt:0: plain\nt:1: ümläut 日本\n"
    )
    assert rows_of(out / "clusters.csv")[0]["sheet"] == "cluster-1.txt"


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).integers(0, 255, (5, 10, 6), dtype=np.uint8),
        np.random.default_rng(0).integers(0, 255, (5, 200, 120, 3), dtype=np.uint8),
    ],
    ids=["grey", "colour"],
)
def test_a_sheet_shows_every_member_of_a_small_cluster(tmp_path: Path, X: np.ndarray) -> None:
    ids = np.array([f"folder/image {i}.png" for i in range(len(X))])
    seen = detection([0, 0, 0, 1, -1])
    found = write_findings(tmp_path / "found", {}, Instances(X, ids), seen)
    for cluster, n in ((0, 3), (1, 1)):
        sheet = found.sheet(cluster)
        assert sheet is not None
        drawn = np.asarray(Image.open(sheet).convert("L"))
        below = drawn[40] < 250
        n_runs = int((np.diff(np.concatenate([[0], below.astype(int)])) == 1).sum())
        assert n_runs >= n  # pictures side by side, with paper between them


def test_a_name_that_is_no_unicode_can_be_found_again(tmp_path: Path) -> None:
    ids = np.array(["caf\udce9.png", "b.png"])
    X = np.zeros((2, 4, 4), np.uint8)
    out = tmp_path / "found"
    write_findings(out, {"model_id": "", "version": None}, Instances(X, ids), detection([0, -1]))
    assert [row["identity"] for row in rows_of(out / "findings.csv")] == ["caf\\udce9.png", "b.png"]
    assert Findings.open(out).assignments.ids.tolist() == ["caf\\udce9.png", "b.png"]


def test_a_disk_that_is_full_is_one_line_and_leaves_nothing(
    points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(findings_writer, "replace_file", full)
    with pytest.raises(BadInput, match=r"cannot write to later \(No space left on device\)"):
        workflow.detect("model", "new.csv", "later")
    assert [path.name for path in points.glob("*later*")] == []


def test_a_large_cluster_is_shown_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cilf.workflow.findings_view.MOST_MEMBERS", 3)
    monkeypatch.setattr(findings_writer, "MOST_COMPARED", 5)
    X = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((1, 4, 4), dtype=np.uint8)
    ids = np.array([f"image-{row:02d}" for row in range(40)])
    found = detection([0] * 20 + [1] * 2 + [-1] * 18)
    folder = tmp_path / "found"
    about = {"model_id": "", "version": None, "data": "new"}
    write_findings(folder, about, Instances(X, ids), found)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "20 instances" in page
    assert "3 are shown" in page
    shown = {identity for identity in ids.tolist() if f'alt="{identity}"' in page}
    assert shown == {"image-17", "image-18", "image-19", "image-20", "image-21"}  # most novel
    assert len(list((folder / "pictures").iterdir())) == 5
    assert len(rows_of(folder / "findings.csv")) == 40
    assert Findings.open(folder).instances(np.arange(40)).tolist() == X.tolist()
