"""From one argument to data: names, paths and the hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cilf import CILF
from cilf.data import Dataset, Instances, load_dataset, load_instances
from cilf.errors import BadConfig, BadInput
from cilf.learners import IForest
from cilf.stream import single_novel

pytest.importorskip("pyarrow")

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 210)}


def paint(folder: Path, n: int = 10) -> Path:
    """A folder of class folders with small noisy pictures."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for i in range(n):
            noisy = np.clip(rng.normal(colour, 25, (12, 12, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(folder / name / f"{i}.png")
    return folder


def write_csv(path: Path, n: int = 30) -> Path:
    rng = np.random.default_rng(0)
    lines = ["width,height,kind"]
    for row in range(n):
        x, y = rng.normal(5 * (row % 3), 0.5, 2)
        lines.append(f"{x:.4f},{y:.4f},{'abc'[row % 3]}")
    path.write_text("\n".join(lines))
    return path


def write_npz(path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    np.savez(path, x=rng.normal(5 * y[:, None], 0.5, (30, 4)), y=y)
    return path


KINDS: dict[str, Callable[[Path], tuple[Path, dict[str, str]]]] = {
    "folder": lambda root: (paint(root / "shots"), {}),
    "csv": lambda root: (write_csv(root / "rows.csv"), {"label": "kind"}),
    "npz": lambda root: (write_npz(root / "arrays.npz"), {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_argument_makes_a_stream_and_a_fitted_learner(kind: str, tmp_path: Path) -> None:
    path, options = KINDS[kind](tmp_path)
    data = load_dataset(path, **options)
    assert (len(data.train), len(data.test), len(data.classes)) == (24, 6, 3)
    assert data.name == path.stem
    learner = IForest(n_estimators=5).fit(*data.train)
    assert sorted(learner.classes_.tolist()) == data.classes
    stream = single_novel(data, n_initial=2, initial_size=4, window_size=2)
    assert {str(i) for window in stream for i in window.ids} <= set(data.train.ids.tolist())


def test_text_and_path_are_the_same_argument(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz")
    np.testing.assert_array_equal(load_dataset(path).train.X, load_dataset(str(path)).train.X)


def test_a_home_folder_may_be_written_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_npz(tmp_path / "a.npz")
    assert isinstance(load_dataset("~/a.npz"), Dataset)


def test_identities_are_paths_and_rows(tmp_path: Path) -> None:
    images = load_dataset(paint(tmp_path / "shots"))
    assert "blue/0.png" in set(images.train.ids.tolist()) | set(images.test.ids.tolist())
    rows = load_dataset(write_csv(tmp_path / "rows.csv"), label="kind")
    assert all(name.startswith("rows.csv:") for name in rows.train.ids)


@pytest.mark.parametrize("kind", ["folder", "npz"])
def test_unlabelled_data_go_to_detect_and_predict(kind: str, tmp_path: Path) -> None:
    path, options = KINDS[kind](tmp_path)
    data = load_dataset(path, **options)
    new = load_instances(path)
    assert isinstance(new, Instances)
    assert len(new) == len(new.X) == 30
    learner = CILF(epochs=1, backbone="mlp").fit(*data.train)
    assert len(learner.detect(new.X)) == len(learner.predict(new.X)) == len(new.ids)


def test_a_column_taken_for_a_label_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "points.csv").write_text("x,y\n1,2\n3,4\n")
    assert load_instances(tmp_path / "points.csv").X.shape == (2, 1)
    assert "'y' is taken for a label and left out (columns=..." in caplog.text
    caplog.clear()
    assert load_instances(tmp_path / "points.csv", columns=["x", "y"]).X.shape == (2, 2)
    assert "taken for a label" not in caplog.text


def test_a_flat_folder_has_instances_but_no_classes(tmp_path: Path) -> None:
    flat = paint(tmp_path / "shots") / "red"
    assert load_instances(flat).ids.tolist() == [f"{i}.png" for i in range(10)]
    with pytest.raises(BadInput, match="no class folders: put the images of each class into"):
        load_dataset(flat)


def test_new_images_take_the_form_of_those_that_were_learned(tmp_path: Path) -> None:
    shots = paint(tmp_path / "shots")
    (tmp_path / "new").mkdir()
    grey = Image.fromarray(np.full((30, 20), 99, np.uint8))
    grey.save(tmp_path / "new" / "a.png")
    assert load_instances(tmp_path / "new").X.shape == (1, 30, 20)
    shape = load_dataset(shots).shape
    assert load_instances(tmp_path / "new", size=shape).X.shape == (1, 12, 12, 3)
    assert load_instances(shots, size=(12, 10)).X.shape == (30, 12, 10)


def test_a_typo_in_a_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match=r"unknown data set 'mnits': did you mean 'mnist'\?"):
        load_dataset("mnits")


@pytest.mark.parametrize("read", [load_dataset, load_instances])
def test_what_is_not_there_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no folder or file .*nowhere: give the path"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("read", [load_dataset, load_instances])
def test_other_kinds_of_files_are_refused_with_those_that_are_read(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "notes.docx").write_text("")
    with pytest.raises(BadInput, match=r"notes\.docx has no suffix .* \.npz, \.csv, "):
        read(tmp_path / "notes.docx")


def test_a_named_set_takes_no_options() -> None:
    with pytest.raises(BadConfig, match="digits takes no options"):
        load_dataset("digits", size=4)


def test_the_folder_one_is_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paint(tmp_path / "photos"))
    assert load_dataset(".").name == "photos"
    monkeypatch.chdir("red")
    assert load_dataset("..").name == "photos"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("folder", {"label": "a"}),
        ("folder", {"column": "a"}),
        ("packed", {"size": 16}),
        ("packed", {"label": "a"}),
        ("table", {"size": 16, "label": "kind"}),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    if kind == "folder":
        path = paint(tmp_path / "photos", 2)
    elif kind == "table":
        path = write_csv(tmp_path / "toy.csv")
    else:
        path = tmp_path / "toy.npz"
        np.savez(path, x=np.eye(4), y=np.array([0, 1, 0, 1]))
    with pytest.raises(BadConfig, match=r"means nothing for .*: leave it out"):
        load_dataset(path, **options)
