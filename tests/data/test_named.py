from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.core.types import Array
from cilf.data import load_dataset, named
from cilf.data.listing import list_datasets
from cilf.errors import BadInput

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Write = Callable[[Path, Array, Array, Array, Array], None]


def pictures(n: int, shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def encoded(image: Array) -> bytes:
    packed = io.BytesIO()
    Image.fromarray(image).save(packed, format="PNG")
    return packed.getvalue()


def write_parquet(path: Path, X: Array, y: Array, names: Iterable[str]) -> None:
    """As the hub writes an image classification set."""
    features = {
        "img": {"_type": "Image"},
        "fine_label": {"names": list(names), "_type": "ClassLabel"},
    }
    images = [{"bytes": encoded(image), "path": None} for image in X]
    table = pa.table(
        {
            "img": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            "fine_label": pa.array(y.tolist(), pa.int64()),
        }
    )
    info = json.dumps({"info": {"features": features}})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"huggingface": info}), path)


def as_parquet(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    names = [str(label) for label in named.ORIGINALS[folder.name].classes]
    half = len(X) // 2
    write_parquet(folder / "train-00000-of-00002.parquet", X[:half], y[:half], names)
    write_parquet(folder / "train-00001-of-00002.parquet", X[half:], y[half:], names)
    write_parquet(folder / "test-00000-of-00001.parquet", X_test, y_test, names)


def as_one_npz(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    np.savez(folder / "all.npz", x_train=X, y_train=y, x_test=X_test, y_test=y_test)


def as_two_npz(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    np.savez(folder / "train.npz", x=X, y=y)
    np.savez(folder / "test.npz", x=X_test, y=y_test)


def as_idx(folder: Path, X: Array, y: Array, X_test: Array, y_test: Array) -> None:
    folder.mkdir(parents=True)
    parts = {"train-images-idx3": X, "train-labels-idx1": y}
    parts |= {"t10k-images-idx3": X_test, "t10k-labels-idx1": y_test}
    for name, array in parts.items():
        head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
        packed = gzip.compress(head + array.astype(np.uint8).tobytes())
        (folder / f"{name}-ubyte.gz").write_bytes(packed)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets, in use."""
    monkeypatch.setenv("CILF_DATA", str(tmp_path / "sets"))
    return tmp_path / "sets"


def write(
    root: Path,
    name: str,
    how: Write = as_one_npz,
    shape: tuple[int, ...] | None = None,
    each: int = 3,
) -> tuple[Array, Array]:
    """A small part of a named set: so many training instances of each class, one test instance."""
    original = named.ORIGINALS[name]
    n_classes = len(original.classes)
    y, y_test = np.arange(each * n_classes) % n_classes, np.arange(n_classes)
    X = pictures(len(y), shape or original.shape, seed=1)
    how(root / name, X, y, pictures(n_classes, shape or original.shape, seed=2), y_test)
    return X, y


@pytest.mark.parametrize("how", [as_parquet, as_one_npz, as_two_npz, as_idx])
def test_every_format_gives_the_same_data(root: Path, how: Write) -> None:
    X, y = write(root, "mnist", how)
    data = load_dataset("mnist")
    np.testing.assert_array_equal(data.train.X, X)
    np.testing.assert_array_equal(data.train.y, y)
    assert data.train.y.dtype.kind == "i"
    assert (len(data.test), data.shape, data.name) == (10, (28, 28), "mnist")
    assert len(set(data.train.ids.tolist())) == len(y)


@pytest.mark.parametrize("how", [as_parquet, as_one_npz])
def test_classes_go_by_name_also_where_a_file_has_numbers(root: Path, how: Write) -> None:
    _, y = write(root, "cifar10", how)
    data = load_dataset("cifar10")
    assert data.train.y.tolist() == [named.THINGS[i] for i in y]
    assert data.classes == sorted(named.THINGS)


def test_shards_in_a_folder_below_are_found_as_the_hub_has_them(root: Path) -> None:
    write(root, "mnist", as_parquet)
    below = root / "mnist" / "data"
    below.mkdir()
    for file in (root / "mnist").glob("*.parquet"):
        file.rename(below / file.name)
    assert len(load_dataset("mnist").train) == 30


def test_cifar50_is_drawn_from_cifar100(root: Path) -> None:
    write(root, "cifar100")
    data = load_dataset("cifar50")
    assert (data.n_drawn, len(data.classes), data.name) == (50, 100, "cifar50")
    assert load_dataset("cifar100").n_drawn is None


def test_a_part_is_used_and_said(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(root, "mnist")
    data = load_dataset("mnist")
    assert caplog.messages == [
        "mnist is a part of the original: 30 and 10 training and test rows of 60,000 and 10,000."
    ]
    assert data.describe()["part_of_rows"] == [60_000, 10_000]
    assert (data.describe()["train_rows"], data.describe()["test_rows"]) == (30, 10)


def test_the_whole_is_used_without_a_word(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "mnist")
    whole = replace(named.ORIGINALS["mnist"], rows=(30, 10))
    monkeypatch.setitem(named.ORIGINALS, "mnist", whole)
    assert load_dataset("mnist").original_rows is None
    assert caplog.messages == []


def test_more_rows_than_the_original_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "mnist")
    fewer = replace(named.ORIGINALS["mnist"], rows=(29, 10))
    monkeypatch.setitem(named.ORIGINALS, "mnist", fewer)
    with pytest.raises(BadInput, match=r"'mnist' is damaged.*30 and 10 rows, the original 29 and"):
        load_dataset("mnist")


def test_another_image_size_is_refused(root: Path) -> None:
    write(root, "mnist", shape=(32, 32))
    with pytest.raises(BadInput, match=r"'mnist' is damaged.*\(32, 32\), not \(28, 28\).*Fetch it"):
        load_dataset("mnist")


def test_a_missing_class_is_refused(root: Path) -> None:
    X = pictures(18, (28, 28), seed=0)
    as_one_npz(root / "mnist", X, np.arange(18) % 9, X[:9], np.arange(9))
    with pytest.raises(BadInput, match=r"training split are not the original's \(lacking: \[9\]"):
        load_dataset("mnist")


def test_strange_names_are_refused(root: Path) -> None:
    X = pictures(10, (32, 32, 3), seed=0)
    names = np.array(["zebra", *named.THINGS[1:]])
    as_one_npz(root / "cifar10", X, names, X, names)
    with pytest.raises(BadInput, match=r"lacking: \['airplane'\], unknown: \['zebra'\]"):
        load_dataset("cifar10")


def test_a_truncated_file_is_refused(root: Path) -> None:
    write(root, "mnist", as_parquet)
    file = root / "mnist" / "test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(BadInput, match="mnist"):
        load_dataset("mnist")


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hub whose name does not resolve, and an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    pytest.importorskip("datasets")
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    for variable in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("unreachable")
def test_offline_and_missing_says_where_it_looked_and_what_fetches_it(root: Path) -> None:
    with pytest.raises(BadInput) as refused:
        load_dataset("mnist")
    text = str(refused.value)
    assert "\n" not in text
    assert f"{root / 'mnist'} has no parquet, npz or idx files" in text
    assert "the hub cannot be reached" in text
    command = f"hf download ylecun/mnist --repo-type dataset --local-dir {root / 'mnist'}"
    assert text.endswith(f"Download it: {command}")


@pytest.mark.usefixtures("unreachable")
def test_without_a_folder_the_line_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CILF_DATA", raising=False)
    with pytest.raises(BadInput, match=r"CILF_DATA is not set, and .*, then set CILF_DATA=DIR$"):
        load_dataset("cifar100")


def test_the_list_shows_what_is_here(root: Path) -> None:
    write(root, "mnist", as_parquet)
    write(root, "cifar10")
    entries = {entry.name: entry for entry in list_datasets()}
    assert list(entries) == ["digits", "mnist", "cifar10", "cifar50", "cifar100"]
    assert (entries["digits"].where, entries["digits"].train_rows) == ("embedded", 1437)
    assert entries["mnist"].to_row()[:6] == ("mnist", "10", "28 x 28", "30", "10", "CILF_DATA")
    assert entries["cifar10"].to_json()["here"]
    assert (entries["cifar50"].n_classes, entries["cifar50"].where) == (50, "hub")
    assert not entries["cifar50"].to_json()["here"]


def test_the_list_shows_what_is_damaged(root: Path) -> None:
    (root / "mnist").mkdir(parents=True)
    for part in ("train", "test"):
        (root / "mnist" / f"{part}.parquet").write_bytes(b"no parquet")
    assert {entry.name: entry.where for entry in list_datasets()}["mnist"] == "damaged in CILF_DATA"
