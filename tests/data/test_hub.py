"""The hub's own library, on data sets in folders: it reads them as it reads downloaded ones."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.data import load_dataset
from cilf.errors import BadConfig, BadInput

datasets = pytest.importorskip("datasets")
constants = pytest.importorskip("huggingface_hub.constants")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub-cache")
    monkeypatch.delenv("CILF_DATA", raising=False)


def write_splits(folder: Path, features: Any, splits: dict[str, dict[str, list[Any]]]) -> str:
    """A data set as a repository of the hub has it."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, columns in splits.items():
        rows = datasets.Dataset.from_dict(columns, features=features)
        rows.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return f"hf:{folder}"


def test_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 6, 6, 3), dtype=np.uint8)
    features = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    from PIL import Image

    splits = {
        "train": {"img": [Image.fromarray(i) for i in images[:8]], "label": [0, 1] * 4},
        "test": {"img": [Image.fromarray(i) for i in images[8:]], "label": [0, 1] * 2},
    }
    data = load_dataset(write_splits(tmp_path / "pets", features, splits))
    np.testing.assert_array_equal(data.train.X, images[:8])
    np.testing.assert_array_equal(data.test.X, images[8:])
    assert data.train.y.tolist() == ["cat", "dog"] * 4


def test_texts_with_a_validation_split_only(tmp_path: Path) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["sport", "news"])}
    )
    splits = {
        "train": {"text": [f"text number {i}" for i in range(6)], "label": [0, 1] * 3},
        "validation": {"text": ["one", "two"], "label": [1, 0]},
    }
    data = load_dataset(write_splits(tmp_path / "articles", features, splits))
    assert data.train.X.tolist()[:2] == ["text number 0", "text number 1"]
    assert (data.test.X.tolist(), data.test.y.tolist()) == (["one", "two"], ["news", "sport"])


def test_a_table_without_a_test_split(tmp_path: Path) -> None:
    (tmp_path / "flowers").mkdir()
    with (tmp_path / "flowers" / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["length", "width", "species"])
        writer.writerows([i, 2.5 * i, "ab"[i % 2]] for i in range(20))
    data = load_dataset(f"hf:{tmp_path / 'flowers'}", label="species")
    assert (data.train.X.shape, len(data.test)) == ((16, 2), 4)
    assert data.classes == ["a", "b"]


def test_the_hub_is_looked_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = datasets.Features(
        {"x": datasets.Value("float32"), "label": datasets.ClassLabel(names=["a", "b"])}
    )
    columns = {"x": [0.0, 1.0, 2.0, 3.0], "label": [0, 1, 0, 1]}
    write_splits(tmp_path / "sets" / "me" / "small", features, {"train": columns})
    monkeypatch.setenv("CILF_DATA", str(tmp_path / "sets"))
    assert len(load_dataset("hf:me/small").train) == 2


def test_offline_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    for variable in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    was_offline = constants.HF_HUB_OFFLINE
    with pytest.raises(BadInput) as refused:
        load_dataset("hf:me/unheard-of")
    assert "hf:me/unheard-of is not here: the hub cannot be reached" in str(refused.value)
    assert "'hf download me/unheard-of --repo-type dataset'" in str(refused.value)
    assert was_offline == constants.HF_HUB_OFFLINE


def test_a_folder_that_holds_no_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="is not here"):
        load_dataset(f"hf:{tmp_path / 'empty'}")


def test_no_id_is_refused() -> None:
    with pytest.raises(BadConfig, match="'hf:' has no id: write hf:ID"):
        load_dataset("hf:")
