from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core.notices import forget
from cilf.data.npz import read_npz, read_npz_instances, read_npz_pair
from cilf.data.options import Options
from cilf.errors import BadInput

X = np.arange(10 * 3, dtype=np.float64).reshape(10, 3)
Y = np.array(["u", "v"] * 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    forget()
    return tmp_path / "toy.npz"


def refused(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    with pytest.raises(BadInput) as caught:
        read_npz(path, "toy", Options())
    return str(caught.value)


@pytest.mark.parametrize("names", [("x", "y"), ("X", "Y"), ("images", "labels"), ("Data", "label")])
def test_one_pair_is_split(path: Path, names: tuple[str, str]) -> None:
    np.savez(path, **{names[0]: X, names[1]: Y})
    data = read_npz(path, "toy", Options(test_share=0.4))
    assert (len(data.train), len(data.test)) == (6, 4)
    for split in data.train, data.test:
        rows = [int(name.removeprefix("toy.npz:")) for name in split.ids]
        np.testing.assert_array_equal(split.X, X[rows].astype(np.float32))
        assert split.y.tolist() == Y[rows].tolist()


@pytest.mark.parametrize("form", ["x_{}", "{}_x", "X-{}"])
def test_two_splits(path: Path, form: str) -> None:
    y = form.replace("x", "y").replace("X", "y")
    arrays = {form.format("train"): X, y.format("train"): Y}
    arrays |= {form.format("test"): X[:4], y.format("test"): Y[:4]}
    np.savez_compressed(path, **arrays)
    data = read_npz(path, "toy", Options())
    assert (len(data.train), len(data.test)) == (10, 4)
    assert data.test.ids[0] == "test/0"


def test_validation_stands_in_for_a_test_part(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = {"x_train": X, "y_train": Y, "x_val": X[:4], "y_val": Y[:4]}
    np.savez(path, **parts)
    assert len(read_npz(path, "toy", Options()).test) == 4
    np.savez(path, **parts, x_test=X[:2], y_test=Y[:2])
    with caplog.at_level(logging.WARNING, "cilf"):
        assert len(read_npz(path, "toy", Options()).test) == 2
    assert "not used beside a training and a test part: x_val, y_val" in caplog.text


def test_pair_of_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "train.npz", x=X, y=Y)
    np.savez(tmp_path / "test.npz", images=X[:2], labels=Y[:2])
    data = read_npz_pair(tmp_path / "train.npz", tmp_path / "test.npz", "toy")
    assert (data.name, len(data.train), len(data.test)) == ("toy", 10, 2)


def test_images_stay_bytes_and_column_labels_are_flattened(path: Path) -> None:
    images = np.arange(10 * 4 * 4 * 3, dtype=np.uint8).reshape(10, 4, 4, 3)
    np.savez(path, x=images, y=np.array([[3.0], [5.0]] * 5))
    data = read_npz(path, "toy", Options())
    assert data.train.X.dtype == np.uint8
    assert data.classes == [3, 5]


def test_labels_of_bytes(path: Path) -> None:
    np.savez(path, x=X, y=np.array([b"u", b"v"] * 5))
    assert read_npz(path, "toy", Options()).classes == ["u", "v"]


def test_instances(path: Path) -> None:
    np.savez(path, x=X)
    found = read_npz_instances(path, Options())
    np.testing.assert_array_equal(found.X, X.astype(np.float32))
    assert found.ids.tolist() == [f"toy.npz:{row}" for row in range(10)]


def test_instances_of_two_splits_are_refused(path: Path) -> None:
    np.savez(path, x_train=X, x_test=X)
    with pytest.raises(BadInput, match=r"lacks x \(it holds x_train, x_test\): save the instances"):
        read_npz_instances(path, Options())


def test_missing_parts(path: Path) -> None:
    assert "toy.npz lacks y (it holds x): add it" in refused(path, x=X)
    assert "toy.npz lacks y_test (it holds x_train" in refused(path, x_train=X, y_train=Y, x_test=X)
    assert "toy.npz lacks x_test" in refused(path, x_train=X, y_train=Y)
    assert "give x and y, or x_train, y_train, x_test and y_test" in refused(path, weights=X)


def test_one_role_twice(path: Path) -> None:
    assert "toy.npz holds 'images' twice, under two names" in refused(path, x=X, images=X, y=Y)


def test_objects_are_refused(path: Path) -> None:
    objects = np.array(["a", 1] * 5, dtype=object)
    assert "toy.npz holds an array of Python objects" in refused(path, x=X, y=objects)


def test_lengths(path: Path) -> None:
    assert "toy.npz: y has 9 labels for 10 instances" in refused(path, x=X, y=Y[:9])


def test_labels_that_are_no_names(path: Path) -> None:
    assert "y has shape (10, 2): give one label for each" in refused(path, x=X, y=np.ones((10, 2)))
    assert "y[0] is 0.5, of a continuous target (float): labels are ints or strings" in refused(
        path, x=X, y=np.full(10, 0.5)
    )


def test_one_class(path: Path) -> None:
    assert "toy.npz: y holds 1 class (['u'])" in refused(path, x=X, y=np.array(["u"] * 10))
    message = refused(path, x_train=X, y_train=np.zeros(10, int), x_test=X, y_test=Y)
    assert "y of the training part holds 1 class" in message


def test_values_that_are_not_finite(path: Path) -> None:
    broken = X.copy()
    broken[3, 1] = np.nan
    assert "toy.npz: x holds nan at index (3, 1)" in refused(path, x=broken, y=Y)


def test_splits_of_other_shape_or_type(path: Path) -> None:
    parts = {"x_train": X, "y_train": Y, "y_test": Y}
    assert "X_test holds instances of shape (2,)" in refused(path, **parts, x_test=X[:, :2])
    message = refused(path, **parts, x_test=X.astype(np.uint8))
    assert "the training part holds float32, the test part uint8: save both alike" in message


def test_channels_first(path: Path) -> None:
    message = refused(path, x=np.zeros((10, 3, 8, 8)), y=Y)
    assert "images have shape (3, 8, 8), channels first: transpose them" in message


def test_files_that_are_no_npz(path: Path) -> None:
    path.write_text("x,y")
    with pytest.raises(BadInput, match=r"toy\.npz is no npz file: write it with numpy\.savez"):
        read_npz_instances(path, Options())
    np.savez(path, x=X, y=Y)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BadInput, match=r"toy\.npz cannot be read \(File is not a zip file\)"):
        read_npz_instances(path, Options())
    path.unlink()
    with pytest.raises(BadInput, match=r"cannot be read \(No such file or directory\): check the"):
        read_npz_instances(path, Options())


@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_labels_that_no_int_can_hold_are_refused(path: Path, value: float) -> None:
    y = np.where(Y == "u", value, 1.0)
    assert "toy.npz: y[0] is " in refused(path, x=X, y=y)


def test_labels_that_are_not_utf8_are_refused(path: Path) -> None:
    assert "toy.npz: y is not UTF-8" in refused(path, x=X, y=np.array([b"\xff", b"b"] * 5))


def test_a_pair_beside_two_parts_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.savez(path, x=X, y=Y, x_train=X, y_train=Y, x_test=X, y_test=Y)
    with caplog.at_level(logging.WARNING, "cilf"):
        read_npz(path, "toy", Options())
    assert "not used beside a training and a test part: x, y." in caplog.text
