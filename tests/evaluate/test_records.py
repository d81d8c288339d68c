from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core import WindowRecord
from cilf.errors import BadInput
from cilf.evaluate import RunFolder, Snapshot, find_runs


def record(window: int) -> WindowRecord:
    scores = {
        field.name: math.nan if field.name == "auroc" else 0.1 * window
        for field in dataclasses.fields(WindowRecord)
        if field.type == "float"
    }
    counts = {"window": window, "n_known": 3, "n_novel_true": 0, "n_novel_planned": 0}
    counts |= {"n_novel_found": None if window == 2 else 1}
    groups = {0: 1 / 3, window: math.nan}
    return WindowRecord(
        **counts, **scores, holdout_accuracy=groups, holdout_classes={0: 3}, n_queried=7
    )


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.write_run({"learner": "iforest"})
    for window in (1, 2):
        folder.append_record(record(window))
    return folder


def test_records_come_back_as_they_were(run: RunFolder) -> None:
    assert [str(r) for r in run.read_records()] == [str(record(1)), str(record(2))]
    assert "NaN" not in (run.path / "records.jsonl").read_text(encoding="utf-8")


def test_a_line_cut_short_is_left_out(run: RunFolder) -> None:
    path = run.path / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert [r.window for r in run.read_records()] == [1]


def test_a_line_that_is_no_record_is_named(run: RunFolder) -> None:
    path = run.path / "records.jsonl"
    whole = path.read_text(encoding="utf-8")
    for broken in ("garbage\n", "{}\n", "[]\n", "3\n"):
        path.write_text(whole + broken, encoding="utf-8")
        with pytest.raises(BadInput, match=r"records\.jsonl:3 is not a record"):
            run.read_records()


def test_records_can_be_replaced(run: RunFolder) -> None:
    run.write_records([record(1)])
    assert [r.window for r in run.read_records()] == [1]


def snapshot(**changes: Any) -> Snapshot:
    whole = Snapshot(
        ids=np.array(["a/1", "b/2"]), map=np.ones((2, 2), np.float32), truth=np.array([1, 2]),
        novel=np.array([False, True]), label=np.array([1, 1]), cluster=np.array([-1, 0]),
        novelty=np.array([0.5, 1.5], np.float32), thumbnails=np.zeros((2, 4, 4), np.uint8),
        matched=np.array(["2"]), sizes=np.array([1]), texts=np.array(["", ""]),
    )  # fmt: skip
    return dataclasses.replace(whole, **changes)


@pytest.mark.parametrize(
    "kept",
    [
        snapshot(),
        snapshot(thumbnails=np.zeros((2, 0, 0), np.uint8), texts=np.array(["", "dernière … fin"])),
    ],
    ids=["images", "texts"],
)
def test_snapshots_come_back_as_they_were(run: RunFolder, kept: Snapshot) -> None:
    run.write_snapshot(1, kept)
    back = run.read_snapshot(1)
    assert back is not None
    for field in dataclasses.fields(Snapshot):
        there, here = getattr(kept, field.name), getattr(back, field.name)
        assert here.dtype == there.dtype
        assert np.array_equal(here, there)
    assert run.read_snapshot(2) is None


def test_clearing_removes_the_run_and_nothing_else(run: RunFolder) -> None:
    kept = run.path / "notes.txt"
    kept.write_text("mine", encoding="utf-8")
    for made in ("report.html", "windows.csv", "checkpoint/002/model.json", "windows/001.npz"):
        path = run.path / made
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    run.clear()
    assert list(run.path.iterdir()) == [kept]


def test_other_files_are_those_of_a_folder_without_a_run(run: RunFolder, tmp_path: Path) -> None:
    assert run.list_other_files() == []
    assert RunFolder(tmp_path / "new").list_other_files() == []
    assert RunFolder(tmp_path).list_other_files() == ["run"]
    (tmp_path / "file").touch()
    assert RunFolder(tmp_path / "file").list_other_files() == ["file"]
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "run.json.pending").touch()  # what a kill in the first moment leaves
    assert RunFolder(begun).list_other_files() == []


@pytest.mark.parametrize("version", [1, 99, None])
def test_a_run_of_another_format_is_refused(run: RunFolder, version: int | None) -> None:
    run.write_run({"format": version})
    with pytest.raises(BadInput, match=f"run format {version} and this cilf reads"):
        RunFolder.open(run.path)


def test_runs_are_found_below_a_folder(run: RunFolder, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "deep" / "er")
    other.write_run({})
    assert find_runs(tmp_path) == [other, run]
    assert find_runs(run.path) == [run]
    with pytest.raises(BadInput, match="holds no run"):
        find_runs(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"{", b"[1]", b"5", b"null", b"\xff"])
def test_a_description_that_does_not_read_is_refused(run: RunFolder, content: bytes) -> None:
    (run.path / "run.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"run\.json cannot be read"):
        RunFolder.open(run.path)


def test_what_a_crash_left_behind_the_last_line_is_left_out(run: RunFolder) -> None:
    before = run.read_records()
    with (run.path / "records.jsonl").open("ab") as file:
        file.write(b"\xff\x00")
    assert repr(run.read_records()) == repr(before)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04"])
def test_a_damaged_snapshot_is_named(run: RunFolder, content: bytes) -> None:
    (run.path / "windows").mkdir(exist_ok=True)
    (run.path / "windows" / "007.npz").write_bytes(content)
    with pytest.raises(BadInput, match=r"007\.npz is damaged"):
        run.read_snapshot(7)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("window", 1), ("window", 0), ("h", "0.5"), ("h", 10**400), ("n_known", -1),
        ("holdout_accuracy", {"x": 1.0}), ("extra", []), ("more", 1), ("named", {"\ud800": 1}),
        ("na", 0.75),
    ],
)  # fmt: skip
def test_a_changed_record_is_one_line(run: RunFolder, key: str, value: object) -> None:
    path = run.path / "records.jsonl"
    first, second = path.read_text(encoding="utf-8").splitlines()
    changed = json.dumps(json.loads(second) | {key: value})
    path.write_text(f"{first}\n{changed}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"records\.jsonl:2 is not a record .*or run it again\.$"):
        run.read_records()


def test_records_out_of_order_are_refused(run: RunFolder) -> None:
    path = run.path / "records.jsonl"
    first, second = path.read_text(encoding="utf-8").splitlines()
    for wrong in (f"{second}\n{first}\n", f"{first}\n{first}\n"):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(BadInput, match="windows in another order"):
            run.read_records()


@pytest.mark.parametrize(
    ("key", "value"),
    [("learner", 3), ("plan", []), ("finished", {"at": "now"}), ("resumed", {}), ("seed", 8)],
)
def test_a_changed_description_is_refused(run: RunFolder, key: str, value: object) -> None:
    run.write_run({"learner": "iforest", "seed": 7})
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    (run.path / "run.json").write_text(json.dumps(about | {key: value}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"run\.json cannot be read .*: restore it from a copy"):
        RunFolder.open(run.path)


def test_an_earlier_run_has_no_checksums(run: RunFolder) -> None:
    expected = str(run.read_records())
    for name in ("run.json", "records.jsonl"):
        text = (run.path / name).read_text(encoding="utf-8")
        lines = text.splitlines() if name == "records.jsonl" else [text]
        bare = [{k: v for k, v in json.loads(line).items() if k != "checksum"} for line in lines]
        kept = "".join(json.dumps(one) + "\n" for one in bare)
        (run.path / name).write_text(kept, encoding="utf-8")
    assert str(RunFolder.open(run.path).read_records()) == expected


def test_a_pipe_in_the_place_of_a_file_of_a_run_blocks_nothing(run: RunFolder) -> None:
    (run.path / "records.jsonl").unlink()
    os.mkfifo(run.path / "records.jsonl")
    with pytest.raises(BadInput, match="not a regular file"):
        run.read_records()
