from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cilf.data import load_dataset, named
from cilf.errors import BadInput

from .named_samples import Write, as_one_npz, as_parquet, pictures, write


@pytest.mark.parametrize("how", [as_parquet, as_one_npz])
def test_classes_go_by_name_also_where_a_file_has_numbers(root: Path, how: Write) -> None:
    _, y = write(root, "cifar10", how)
    data = load_dataset("cifar10")
    assert data.train.y.tolist() == [named.THINGS[i] for i in y]
    assert data.classes == sorted(named.THINGS)


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
