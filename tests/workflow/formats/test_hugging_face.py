from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.errors import BadInput
from cilf.workflow import Findings, export_findings, read_labels

from ..exported import IDS

datasets = pytest.importorskip("datasets")


def load(folder: Path, tmp_path: Path) -> Any:
    return datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))


def test_pictures(pictures: Findings, tmp_path: Path) -> None:
    export_findings(pictures.path, tmp_path / "out", to="hugging-face")
    loaded = load(tmp_path / "out", tmp_path)
    assert tuple(loaded["identity"]) == IDS
    assert loaded[0]["label"] == "=cow"
    assert (loaded[4]["label"], loaded[4]["predicted"], loaded[4]["cluster"]) == (None, "cat", None)
    np.testing.assert_array_equal(
        np.array(loaded["embedding"], dtype=np.float32), pictures.embedding
    )
    np.testing.assert_array_equal(
        np.asarray(loaded[0]["image"]), pictures.instances(np.array([0]))[0]
    )
    assert loaded[2]["image"].size == (30, 40)


def test_labels_that_were_changed_there(texts: Findings, tmp_path: Path) -> None:
    export_findings(texts.path, tmp_path / "out", to="hugging-face")
    loaded = load(tmp_path / "out", tmp_path)
    assert loaded[3]["text"] == "text 3\nof several <lines>"
    changed = loaded.map(lambda row: {"label": "mouse" if row["cluster"] == 1 else row["label"]})
    changed.to_parquet(str(tmp_path / "mine.parquet"))
    labels = read_labels(tmp_path / "mine.parquet", texts.path)[1]
    assert {labels[identity] for identity in ("=1+1", "-2", "sub/pic 5.png")} == {"mouse"}
    assert labels["@me"] == "hen"


def test_files_that_are_not_ours(texts: Findings, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="the file is no parquet file"):
        read_labels(path, texts.path)
    pq.write_table(pa.table({"identity": ["7"]}), path)
    with pytest.raises(BadInput, match="lacks the column 'label'"):
        read_labels(path, texts.path)
