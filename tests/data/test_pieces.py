"""Pieces hold what one process reads from the beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core.types import Array
from cilf.data import load_instances, pieces
from cilf.data.options import Options
from cilf.data.paths import divide_instances
from cilf.data.pieces import Pieces
from cilf.errors import BadInput

from ..shards import write_images, write_shards

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 7)


def divide(path: Path, **options: Any) -> Pieces:
    divided = divide_instances(path, Options(**options))
    assert divided is not None
    return divided


def read(divided: Pieces) -> tuple[Array, Array]:
    """The instances that are kept, and their identities."""
    parts, bad, start = [], {}, 0
    for n, of_piece in zip(divided.sizes, divided.reads, strict=True):
        X, faults = of_piece()
        assert len(X) == n
        bad |= {start + row: fault for row, fault in faults.items()}
        start += n
        parts.append(X)
    keep = divided.settle(bad)
    return np.concatenate(parts)[keep], divided.ids[keep]


def columns(kind: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    if kind == "text":
        return {"id": [f"row {i}" for i in range(50)], "text": [f"text {i}" for i in range(50)]}
    if kind == "vector":
        return {"v": list(rng.normal(size=(50, 3)))}
    return {"a": rng.normal(size=50), "b": [None, *range(49)]}


@pytest.mark.parametrize("kind", ["text", "vector", "number"])
def test_a_table(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns(kind)), path, row_group_size=20)
    whole = load_instances(path, skip_bad=True)
    divided = divide(path, skip_bad=True)
    X, ids = read(divided)
    assert len(divided.sizes) == 8  # of three row groups
    assert X.tolist() == whole.X.tolist()
    assert ids.tolist() == whole.ids.tolist()
    assert divided.columns == whole.columns


def test_shards(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 3, 20, range(2), 0)
    whole = load_instances(tmp_path / "shards")
    X, ids = read(divide(tmp_path / "shards"))
    assert np.array_equal(X, whole.X)
    assert ids.tolist() == whole.ids.tolist() == [f"shards:{row}" for row in range(60)]


def test_images_of_a_folder_and_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    write_images(tmp_path / "photos", 20, 0)
    files = sorted((tmp_path / "photos").iterdir())
    encoded = [file.read_bytes() for file in files]
    pq.write_table(pa.table({"image": encoded}), tmp_path / "photos.parquet")
    whole = load_instances(tmp_path / "photos", size=(9, 8, 3))
    for path in (tmp_path / "photos", tmp_path / "photos.parquet"):
        X, ids = read(divide(path, size=(9, 8, 3)))
        assert np.array_equal(X, whole.X)
        assert len(ids) == 20


def test_a_format_without_pieces(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    assert divide_instances(tmp_path / "rows.csv", Options()) is None


def test_a_piece_that_cannot_be_read_has_faults_and_the_others_go_on(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 2, 600, range(2), 0)
    whole = load_instances(tmp_path / "shards")
    damaged = tmp_path / "shards" / "1.parquet"
    content = bytearray(damaged.read_bytes())
    content[4:200] = bytes(196)  # the first column of the first row group
    damaged.write_bytes(content)
    with pytest.raises(BadInput, match=r"shards: 300 of 1200 rows cannot be used: row 601 .*1\.pa"):
        read(divide(tmp_path / "shards"))
    X, _ = read(divide(tmp_path / "shards", skip_bad=True))
    assert np.array_equal(X, np.delete(whole.X, np.arange(600, 900), axis=0))
