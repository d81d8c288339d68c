from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cilf.data import load_dataset, local
from cilf.data.options import Options

from .named_samples import Write, as_idx, as_one_npz, as_parquet, as_two_npz, write


@pytest.mark.parametrize("how", [as_parquet, as_one_npz, as_two_npz, as_idx])
def test_every_format_gives_the_same_data(root: Path, how: Write) -> None:
    X, y = write(root, "mnist", how)
    data = load_dataset("mnist")
    np.testing.assert_array_equal(data.train.X, X)
    np.testing.assert_array_equal(data.train.y, y)
    assert data.train.y.dtype.kind == "i"
    assert (len(data.test), data.shape, data.name) == (10, (28, 28), "mnist")
    assert len(set(data.train.ids.tolist())) == len(y)


def test_shards_in_a_folder_below_are_found_as_the_hub_has_them(root: Path) -> None:
    write(root, "mnist", as_parquet)
    below = root / "mnist" / "data"
    below.mkdir()
    for file in (root / "mnist").glob("*.parquet"):
        file.rename(below / file.name)
    assert len(load_dataset("mnist").train) == 30


def test_an_empty_folder_holds_no_data_set(tmp_path: Path) -> None:
    assert local.find_dataset(tmp_path, "toy", Options()) is None
    assert local.describe_forms() == "parquet, npz or idx files"


def test_several_files_of_arrays_are_no_data_set(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", x=np.eye(4), y=np.array([0, 1, 0, 1]))
    assert local.find_dataset(tmp_path, "toy", Options()) is None


def test_without_the_variable_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CILF_DATA", raising=False)
    assert local.local_folder("mnist") is None
