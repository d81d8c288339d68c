from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.data import load_dataset
from cilf.data.folders import read_flat_folder, read_folder
from cilf.data.images import EncodedImages, decode_dataset, decode_instances
from cilf.data.options import Options
from cilf.data.pixels import is_image
from cilf.errors import BadInput

from ..bursts import make_bursts, make_scenes

pytestmark = pytest.mark.usefixtures("own_cache")


def draw(folder: Path, *names: str, level: int = 7) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), level).save(path)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "cilf"]


def labels(pictures: EncodedImages) -> dict[str, object]:
    assert pictures.y is not None
    return dict(zip(pictures.ids.tolist(), pictures.y.tolist(), strict=True))


def refusal(folder: Path, *, flat: bool = False) -> str:
    with pytest.raises(BadInput) as refused:
        read_flat_folder(folder) if flat else read_folder(folder, Options())
    text = str(refused.value)
    assert "\n" not in text
    assert str(folder) in text
    return text.replace(str(folder), "FOLDER")


@pytest.mark.parametrize(
    "name", ["a.jpg", "a.JPEG", "b.c.Png", "a.bmp", "a.gif", "a.tif", "a.tiff"]
)
def test_these_are_images(name: str) -> None:
    assert is_image(Path(name))


@pytest.mark.parametrize("name", ["a.txt", "png", "a.png.part", "a.svg", "a"])
def test_these_are_not(name: str) -> None:
    assert not is_image(Path(name))


# Class folders


def test_the_folder_is_the_label_and_the_path_the_identity(tmp_path: Path) -> None:
    draw(tmp_path, "dog/1.png", "dog/deep/er/2.png", "big cat/ü 1.png", "big cat/b.png")
    found = read_folder(tmp_path, Options())
    assert labels(found) == {
        "big cat/b.png": "big cat",
        "big cat/ü 1.png": "big cat",
        "dog/1.png": "dog",
        "dog/deep/er/2.png": "dog",
    }
    assert found.where == str(tmp_path)
    assert found.in_test.sum() == 2  # one of each class


def test_images_are_in_natural_order(tmp_path: Path) -> None:
    draw(tmp_path, *[f"{label}/x{row}.png" for label in (10, 9, 0) for row in (11, 2, 1)])
    draw(tmp_path, "9/X2.png", "9/x02.png")
    assert read_folder(tmp_path, Options()).ids.tolist() == [
        *["0/x1.png", "0/x2.png", "0/x11.png"],
        *["9/x1.png", "9/X2.png", "9/x02.png", "9/x2.png", "9/x11.png"],
        *["10/x1.png", "10/x2.png", "10/x11.png"],
    ]


def test_digits_of_other_scripts_can_be_sorted(tmp_path: Path) -> None:
    draw(tmp_path, "a/\u0661.png", "a/1.png", "b/\u00b21.png", "b/1.png")
    assert len(read_folder(tmp_path, Options()).ids) == 4


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["0", "7", "10"], [0, 7, 10]),
        (["00", "7", "10"], ["00", "7", "10"]),
        (["0", "7", "ten"], ["0", "7", "ten"]),
        (["-1", "1"], ["-1", "1"]),
        (["1", "9" * 19], ["1", "9" * 19]),
        (["1", "\u0663"], ["1", "\u0663"]),
    ],
)
def test_labels_are_ints_if_all_names_are_plain_numbers(
    tmp_path: Path, names: list[str], expected: list[object]
) -> None:
    draw(tmp_path, *[f"{name}/{row}.png" for name in names for row in (1, 2)])
    assert set(labels(read_folder(tmp_path, Options())).values()) == set(expected)


def test_the_held_out_share_is_an_option(tmp_path: Path) -> None:
    draw(tmp_path, *[f"{name}/{row}.png" for name in "ab" for row in range(10)])
    found = read_folder(tmp_path, Options(test_share=0.4))
    assert found.in_test.sum() == 8
    assert (found.in_test == read_folder(tmp_path, Options(test_share=0.4)).in_test).all()


@pytest.mark.parametrize(
    ("train", "test"), [("train", "test"), ("Training", "VAL"), ("TRAIN", "validation")]
)
def test_train_and_test_folders_say_what_is_held_out(tmp_path: Path, train: str, test: str) -> None:
    draw(tmp_path, f"{train}/a/1.png", f"{train}/b/1.png", f"{test}/a/1.png")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "read.me").touch()
    found = read_folder(tmp_path, Options())
    held_out = dict(zip(found.ids.tolist(), found.in_test.tolist(), strict=True))
    assert held_out == {
        f"{train}/a/1.png": False,
        f"{train}/b/1.png": False,
        f"{test}/a/1.png": True,
    }
    assert labels(found)[f"{test}/a/1.png"] == "a"


def test_val_and_test_are_both_held_out(tmp_path: Path) -> None:
    draw(
        tmp_path, *[f"{part}/{label}/1.png" for part in ("train", "val", "test") for label in "ab"]
    )
    found = read_folder(tmp_path, Options())
    assert found.ids[~found.in_test].tolist() == ["train/a/1.png", "train/b/1.png"]


def test_train_without_test_is_split(tmp_path: Path) -> None:
    draw(tmp_path, *[f"train/{label}/{row}.png" for label in "ab" for row in range(5)])
    found = read_folder(tmp_path, Options())
    assert set(labels(found).values()) == {"a", "b"}
    assert found.in_test.sum() == 2


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    draw(tmp_path, *[f"{label}/{row}.png" for label in ("train", "bus") for row in (1, 2)])
    assert set(labels(read_folder(tmp_path, Options())).values()) == {"train", "bus"}


def test_what_systems_leave_behind_is_ignored_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw(tmp_path, "a/1.png", "a/2.png", "b/1.png", "b/2.png")
    draw(tmp_path, "a/.hidden.png", ".git/x.png", "__MACOSX/a/1.png")
    (tmp_path / "a" / "Thumbs.db").touch()
    (tmp_path / ".DS_Store").touch()
    assert len(read_folder(tmp_path, Options()).ids) == 4
    assert said(caplog) == []


def test_other_files_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    draw(tmp_path, "a/1.png", "a/2.png", "b/1.png", "b/2.png")
    (tmp_path / "notes.txt").touch()
    read_folder(tmp_path, Options())
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / "a" / name).touch()
    read_folder(tmp_path, Options())
    assert said(caplog) == [
        f"{tmp_path}: ignored 1 file that is no image (notes.txt)",
        f"{tmp_path}: ignored 4 files that are no images (a/a.csv, a/b.csv, a/c.csv, ...)",
    ]


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    draw(tmp_path / "store", "cats/1.png", "dogs/1.png", "dogs/2.png")
    classes = tmp_path / "classes"
    (classes / "cat").mkdir(parents=True)
    (classes / "dog").symlink_to(tmp_path / "store" / "dogs", target_is_directory=True)
    (classes / "cat" / "1.png").symlink_to(tmp_path / "store" / "cats" / "1.png")
    (classes / "cat" / "2.png").symlink_to(tmp_path / "store" / "cats" / "1.png")
    (classes / "cat" / "up").symlink_to(classes, target_is_directory=True)
    found = read_folder(classes, Options())
    assert found.ids.tolist() == ["cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"]


def test_a_link_to_nowhere_is_an_unreadable_image(tmp_path: Path) -> None:
    draw(tmp_path, "a/1.png", "a/2.png", "b/1.png", "b/2.png")
    (tmp_path / "a" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(BadInput, match=r"1 of 5 images .* \(a/gone.png: No such file"):
        decode_dataset("mine", read_folder(tmp_path, Options()), Options())


def test_a_name_that_is_not_utf8_can_be_read(tmp_path: Path) -> None:
    draw(tmp_path, "a/1.png", "a/2.png")
    (tmp_path / "a" / "2.png").rename(tmp_path / "a" / os.fsdecode(b"\xe9.png"))
    assert len(decode_instances(read_flat_folder(tmp_path), Options())) == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param([], "FOLDER holds no images: name a folder that does (.bmp .gif", id="empty"),
        pytest.param(
            ["1.png", "2.png"],
            "FOLDER holds images (1.png, 2.png) but no class folders: put the images of each",
            id="flat",
        ),
        pytest.param(
            ["a/1.png", "b/1.png", "1.png", "2.png", "3.png", "4.png"],
            "FOLDER holds images (1.png, 2.png, 3.png, ...) beside class folders (a, b): put the",
            id="flat and classes",
        ),
        pytest.param(
            ["train/a/1.png", "train/b/1.png", "train/1.png"],
            "FOLDER holds images (train/1.png) beside class folders (train/a, train/b): put the",
            id="flat and classes in train",
        ),
        pytest.param(
            ["train/1.png", "test/1.png"],
            "FOLDER holds images (test/1.png, train/1.png) but no class folders: put the images",
            id="flat train and test",
        ),
        pytest.param(
            ["a/1.png", "a/2.png"],
            "FOLDER has images of one class only ('a'): put the images of each class into a folder",
            id="one class",
        ),
        pytest.param(
            ["test/a/1.png", "test/b/1.png"],
            "FOLDER has images to test on (test) but none to train on: add a folder train",
            id="test without train",
        ),
        pytest.param(
            ["a/1.png", "a/2.png", "b/1.png"],
            "FOLDER: class 'b' has one instance only, but one is held out: add more",
            id="one image of a class",
        ),
    ],
)
def test_folders_without_classes_are_refused(
    tmp_path: Path, names: list[str], message: str
) -> None:
    draw(tmp_path, *names)
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize("flat", [False, True])
def test_what_is_no_folder_is_refused(tmp_path: Path, flat: bool) -> None:
    draw(tmp_path, "1.png")
    assert refusal(tmp_path / "1.png", flat=flat) == "FOLDER is a file: name a folder of images."
    missing = refusal(tmp_path / "missing", flat=flat)
    assert missing == "FOLDER does not exist: name a folder of images."


# Flat folders


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    draw(tmp_path, "10.png", "9.png")
    found = read_flat_folder(tmp_path)
    assert found.y is None
    assert found.ids.tolist() == ["9.png", "10.png"]
    assert not found.in_test.any()


def test_images_inside_count_if_there_are_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw(tmp_path, "b/1.png", "a/deep/1.png")
    assert read_flat_folder(tmp_path).ids.tolist() == ["a/deep/1.png", "b/1.png"]
    assert said(caplog) == []
    draw(tmp_path, "1.png")
    assert read_flat_folder(tmp_path).ids.tolist() == ["1.png"]
    assert said(caplog) == [f"{tmp_path}: 2 images in folders inside it are left out"]


def test_a_flat_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert refusal(tmp_path, flat=True).startswith("FOLDER holds no images")


# Decoding


def test_folders_are_decoded(tmp_path: Path) -> None:
    for level, label in enumerate(["x", "y"]):
        draw(tmp_path, f"train/{label}/1.png", f"train/{label}/2.png", level=level)
        draw(tmp_path, f"test/{label}/1.png", level=10 + level)
    data = decode_dataset("mine", read_folder(tmp_path, Options()), Options())
    assert data.train.X[:, 0, 0].tolist() == [0, 0, 1, 1]
    assert data.train.y.tolist() == ["x", "x", "y", "y"]
    assert data.test.X[:, 0, 0].tolist() == [10, 11]
    assert data.test.ids.tolist() == ["test/x/1.png", "test/y/1.png"]


def test_a_changed_file_is_decoded_again(tmp_path: Path) -> None:
    draw(tmp_path, "1.png", "2.png", level=1)
    before = decode_instances(read_flat_folder(tmp_path), Options())
    draw(tmp_path, "2.png", level=2)
    os.utime(tmp_path / "2.png", ns=(0, 0))
    after = decode_instances(read_flat_folder(tmp_path), Options())
    assert before.X[:, 0, 0].tolist() == [1, 1]
    assert after.X[:, 0, 0].tolist() == [1, 2]


def test_a_relative_and_an_absolute_path_share_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(tmp_path, "photos/1.png")
    monkeypatch.chdir(tmp_path)
    relative = read_flat_folder(Path("photos"))
    assert relative.key == read_flat_folder(tmp_path / "photos").key
    monkeypatch.chdir("/")
    assert len(decode_instances(relative, Options())) == 1
    assert np.array_equal(relative.ids, ["1.png"])


def test_a_class_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    draw(tmp_path, "a/1.png", "a/2.png", "b/1.png", "b/2.png")
    (tmp_path / "b").rename(tmp_path / os.fsdecode(b"\xe9"))
    assert "a class folder '\\udce9', which is not UTF-8: rename it." in refusal(tmp_path)


@pytest.mark.parametrize("above", ["", "train/"])
def test_class_folders_without_images_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, above: str
) -> None:
    draw(tmp_path, f"{above}a/1.png", f"{above}a/2.png", f"{above}b/deep/1.png", f"{above}b/2.png")
    for name in ("zebra", ".hidden"):
        (tmp_path / above / name).mkdir()
    read_folder(tmp_path, Options())
    assert said(caplog) == [f"{tmp_path}: no images, hence no class, in {above}zebra"]


@pytest.mark.parametrize("as_table", [False, True])
def test_frames_of_one_scene_are_all_held_out_or_none(tmp_path: Path, as_table: bool) -> None:
    frames, scene = make_bursts(make_scenes(30, seed=0), shift=0, seed=0)
    lines = ["path,label"]
    for row, (frame, number) in enumerate(zip(frames, scene, strict=True)):
        name = f"{'ab'[number % 2]}/{number}-{row}.png"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(frame).save(tmp_path / name)
        lines.append(f"{name},{'ab'[number % 2]}")
    (tmp_path / "list.csv").write_text("\n".join(lines))
    data = load_dataset(tmp_path / "list.csv" if as_table else tmp_path, test_share=0.3)
    scenes = [{i.split("/")[1].split("-")[0] for i in part.ids} for part in (data.train, data.test)]
    assert not scenes[0] & scenes[1]
    assert 0.2 < len(data.test) / len(frames) <= 0.3
    again = {
        i: X
        for part in (data.train, data.test)
        for X, i in zip(part.X, part.ids.tolist(), strict=True)
    }
    assert all(i.split("/")[0] == y for i, y in zip(data.test.ids, data.test.y, strict=True))
    row = int(data.test.ids[0].split("-")[1].split(".")[0])
    assert np.array_equal(again[data.test.ids[0]], frames[row])
