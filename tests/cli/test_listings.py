"""Data on the command line: the list, the map, and runs on data of one's own, end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cilf.data import load_dataset
from cilf.evaluate import RunFolder

pytest.importorskip("pyarrow")

HASTY = ["--set", "epochs=3", "--set", "update_epochs=2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Digits as PNG files in class folders."""
    data = load_dataset("digits")
    for i, (image, label) in enumerate(zip(data.train.X, data.train.y, strict=True)):
        if i < 400:
            place = tmp_path / "shots" / f"digit {label}"
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(place / f"{i}.png")
    return tmp_path / "shots"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Digits as rows of 64 numbers."""
    data = load_dataset("digits")
    lines = [",".join([*(f"p{i}" for i in range(64)), "digit"])]
    for image, label in zip(data.train.X[:400], data.train.y[:400], strict=True):
        lines.append(",".join([*map(str, image.ravel().tolist()), f"d{label}"]))
    (tmp_path / "pixels.csv").write_text("\n".join(lines))
    return tmp_path / "pixels.csv"


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
        (["data", "show", "./nowhere"], "nowhere is not there: give a folder or a file"),
        (["data", "show", "digits", "--set", "epochs=3"], "--set epochs is for a learner"),
        (["data", "show", "digits", "--out", "a.txt"], "unknown format of a figure '.txt'"),
        (["data", "show", "digits", "--size", "16"], "digits takes no options"),
        (["run", "--data", "./nowhere"], "nowhere is not there: give a folder or a file"),
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


def test_a_run_on_a_folder_of_images(run: Any, folder: Path) -> None:
    done = run("run", "--learner", "cilf", "--data", str(folder), "--scenario", "single", *HASTY)
    assert done.code == 0, done.err
    out = RunFolder.open("runs/cilf-shots-single-seed0")
    about = out.read_run()
    assert about["dataset"]["train_rows"] + about["dataset"]["test_rows"] == 400
    assert about["dataset"]["instance_shape"] == [8, 8]
    snapshot = out.read_snapshot(1)
    assert snapshot is not None
    assert all((folder / str(name)).is_file() for name in snapshot.ids)
    assert {str(label).split()[0] for label in snapshot.truth} == {"digit"}


def test_a_run_on_a_table_of_features(run: Any, table: Path) -> None:
    done = run(
        "run", "--learner", "cilf", "--data", str(table), "--label", "digit",
        "--scenario", "single", "--out", "here", *HASTY,
    )  # fmt: skip
    assert done.code == 0, done.err
    about = RunFolder.open("here").read_run()
    assert about["dataset"]["instance_shape"] == [64]
    assert about["loading"] == {"label": "digit"}
    snapshot = RunFolder.open("here").read_snapshot(1)
    assert snapshot is not None
    assert all(str(name).startswith("pixels.csv:") for name in snapshot.ids)


def test_a_column_that_has_to_be_named(run: Any, table: Path) -> None:
    done = run("run", "--data", str(table))
    assert done.code == 2
    assert "no column that looks like a label" in done.err
    assert "--label" in done.err


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


def test_a_run_on_texts(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    phrases = {
        "cooking": "stir the soup with {} and salt",
        "football": "the striker scored {} goals in the match",
        "weather": "rain and wind are expected for {} days",
    }
    rows = [
        f"{phrase.format(number)},{topic}"
        for topic, phrase in phrases.items()
        for number in range(2, 32)
    ]
    (tmp_path / "notes.csv").write_text("\n".join(["text,label", *rows]))
    done = run("run", "--data", "notes.csv", "--scenario", "single", "--out", "here", *HASTY)
    assert done.code == 0, done.err
    assert "texts are seen through minilm" in done.err
    folder = RunFolder.open("here")
    assert folder.read_run()["features"] == "minilm"
    snapshot = folder.read_snapshot(1)
    assert snapshot is not None
    assert set(snapshot.texts.tolist()) <= {row.partition(",")[0] for row in rows}
    assert str(snapshot.texts[0]) in (folder.path / "report.html").read_text()


def test_auto_says_which_network_photographs_are_seen_through(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    rng = np.random.default_rng(0)
    for name, colour in {
        "red": (220, 40, 40),
        "green": (40, 200, 60),
        "blue": (40, 60, 220),
    }.items():
        (tmp_path / "shots" / name).mkdir(parents=True)
        for i in range(16):
            noisy = np.clip(rng.normal(colour, 25, (16, 16, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(tmp_path / "shots" / name / f"{i}.png")
    arguments = ["run", "--data", "shots", "--scenario", "single", "--scale", "smoke", *HASTY]
    auto = run(*arguments, "--out", "auto")
    assert auto.code == 0, auto.err
    assert "colour images are seen through efficientnet-lite0" in auto.err
    assert RunFolder.open("auto").read_run()["features"] == "efficientnet-lite0"
    assert "efficientnet-lite0 (pre-trained, frozen)" in Path("auto/report.html").read_text()
    scratch = run(*arguments, "--out", "scratch", "--set", "backbone=convnet")
    assert scratch.code == 0, scratch.err
    assert "efficientnet" not in scratch.err
    assert RunFolder.open("scratch").read_run()["features"] is None


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
    assert (done.code, "lies inside the data (.): name a place outside" in done.err) == (2, True)
    assert sorted(folder.iterdir()) == before


def test_a_place_that_cannot_be_written_is_one_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "taken.png").mkdir()
    done = run("data", "show", "digits", "--out", "taken.png")
    assert done.code == 2
    assert done.err.startswith("error: taken.png")
    assert done.err.count("\n") == 1
    long = run("run", "--learner", "iforest", "--out", "x" * 300)
    assert (long.code, "File name too long" in long.err) == (2, True)
