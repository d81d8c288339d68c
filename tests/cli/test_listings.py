from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cilf.learners import LEARNERS


def test_learners_are_listed(run: Any) -> None:
    listed = run("learners")
    assert all(name in listed.out for name in LEARNERS)
    told = {entry["name"]: entry for entry in json.loads(run("learners", "--json").out)}
    assert list(told) == list(LEARNERS)
    assert told["iforest"]["parameters"]["n_estimators"] == 100
    assert all(entry["about"] for entry in told.values())


def test_data_sets_are_listed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CILF_DATA", raising=False)
    listed = run("data")
    assert listed.code == 0
    for name in ("digits", "mnist", "cifar10", "cifar50", "cifar100", "hf:ID"):
        assert name in listed.out
    entries = {entry["name"]: entry for entry in json.loads(run("data", "--json").out)}
    assert entries["digits"]["here"] is True
    assert (entries["mnist"]["here"], entries["mnist"]["train_rows"]) == (False, 60_000)


def test_a_stream_is_shown(run: Any) -> None:
    done = run("data", "show", "digits", "--scenario", "single", "--seed", "1")
    assert done.code == 0
    assert done.out.startswith("digits-single-smoke, seed 1: digits has 1,437 training and 360")
    picture = Path("runs/digits-single-seed1.png")
    assert done.out.rstrip().endswith(f"map: {picture}")
    with Image.open(picture) as image:
        assert min(image.size) > 300
    rows = [line.split() for line in done.out.splitlines()[4:10]]
    assert [row[0] for row in rows] == ["initial", "1", "2", "3", "4", "5"]
    assert "instances of a class: 55 to 58 initial; in a window " in done.out


def test_the_instances_of_a_class_are_shown(run: Any) -> None:
    sizes = ("initial_size=40", "novel_size=30", "window_size=20", "n_windows=3", "vanishing=0")
    changes = [part for size in sizes for part in ("--set", f"stream.{size}")]
    done = run("data", "show", "digits", *changes)
    said = "40 initial; in a window 30 when novel, 20 when known; 30 to 100 in all"
    assert f"instances of a class: {said}" in done.out


def test_a_stream_is_shown_as_json(run: Any) -> None:
    done = run("data", "show", "digits", "--set", "stream.n_quiet=1", "--out", "a.svg", "--json")
    shown = json.loads(done.out)
    assert (shown["map"], Path("a.svg").exists()) == ("a.svg", True)
    assert shown["data"]["train_rows"] == 1437
    assert [row["window"] for row in shown["plan"]] == list(range(5))
    assert sum(not row["novel"] for row in shown["plan"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "show", "digit"], "did you mean 'digits'? Known: digits, mnist,"),
        (["data", "show", "./nowhere"], "there is no folder or file nowhere: give the path"),
        (
            ["data", "show", "digits", "--set", "detector.k_max=3"],
            "--set detector.k_max is a parameter of a learner",
        ),
        (["data", "show", "digits", "--out", "a.txt"], "unknown format of a figure '.txt'"),
        (["data", "show", "digits", "--size", "16"], "digits takes no options"),
        (["run", "--data", "./nowhere"], "there is no folder or file nowhere: give the path"),
        (["run", "--data", "digits", "--skip-bad"], "digits takes no options"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    run: Any, arguments: list[str], message: str
) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 1
    assert message in done.err


def test_unreadable_files_are_named_and_skipped_only_when_told(run: Any, folder: Path) -> None:
    (folder / "digit 0" / "bad.png").write_bytes(b"no image")
    refused = run("data", "show", str(folder))
    assert refused.code == 2
    assert "1 of 401 images cannot be read (digit 0/bad.png: " in refused.err
    assert "--skip-bad" in refused.err
    done = run("data", "show", str(folder), "--skip-bad")
    assert done.code == 0
    assert "skipped 1 of 401 images that cannot be read (digit 0/bad.png" in done.err


def test_a_size_is_shown_and_can_be_changed(run: Any, folder: Path) -> None:
    Image.fromarray(np.zeros((30, 20), np.uint8)).save(folder / "digit 1" / "large.png")
    done = run("data", "show", str(folder))
    assert "401 images of 2 sizes and 1 mode are brought to 8 x 8 pixels, grey" in done.err
    shown = json.loads(run("data", "show", str(folder), "--size", "12", "--json").out)
    assert shown["data"]["instance_shape"] == [12, 12]


@pytest.mark.parametrize(("option", "named"), [("--size", "size"), ("--test-share", "test_share")])
def test_zero_is_a_value_too(run: Any, folder: Path, option: str, named: str) -> None:
    done = run("data", "show", str(folder), option, "0")
    assert (done.code, f"error: {named} is 0" in done.err) == (2, True)


@pytest.mark.parametrize("command", [["data", "show", "."], ["run", "--data", "."]])
def test_nothing_is_written_among_the_images(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    done = run(*command)
    assert (done.code, "lies inside the data (.): give a folder outside" in done.err) == (2, True)
    assert sorted(folder.iterdir()) == before


def test_a_place_that_cannot_be_written_is_one_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "taken.png").mkdir()
    done = run("data", "show", "digits", "--out", "taken.png")
    assert done.code == 2
    assert done.err.startswith("error: taken.png")
    assert done.err.count("\n") == 1
    long = run("run", "--learner", "iforest", "--out", "x" * 300)
    assert (long.code, "File name too long" in long.err) == (2, True)
